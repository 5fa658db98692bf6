"""Models: real replies, recorded or live.

Read in this order: `catalogue` (which files), `tokenizer` (text and ids), `seam` (one request),
`recordings` (replies kept), `engine` (replies made), `source` (which of the two), `chat` (what the
notebooks call), `scripted` (replies written by hand), `fetch` (getting the weights).
"""

from course_utils.models.chat import CourseModel, load
from course_utils.models.scripted import scripted

__all__ = ["CourseModel", "load", "scripted"]
