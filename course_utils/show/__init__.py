"""Pictures and tables for notebooks: HTML for the eye, and a text twin that says the same.

    from course_utils.show import bars, lines, messages, prompt, table, tokens, trace

Every function returns a `View`. All text is escaped: a poisoned page that a tool has read must
not run in the reader's browser. Colours are JupyterLab's theme variables with fallbacks, and
never the only signal.
"""

from course_utils.show.charts import bars, lines
from course_utils.show.chat import messages, prompt, tokens
from course_utils.show.tables import table
from course_utils.show.traces import trace
from course_utils.show.view import View

__all__ = ["View", "bars", "lines", "messages", "prompt", "table", "tokens", "trace"]
