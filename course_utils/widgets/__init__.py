"""Things to move in a notebook; each has a static twin, so the notebook reads whole without them.

Nothing else in the package imports ipywidgets.
"""

from course_utils.widgets.explorer import TrimmingExplorer, trimming_explorer
from course_utils.widgets.trimming_view import consequences, trimming_view

__all__ = ["TrimmingExplorer", "consequences", "trimming_explorer", "trimming_view"]
