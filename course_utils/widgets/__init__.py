"""Things to move in a notebook; each has a static twin, so the notebook reads whole without them.

Nothing else in the package imports ipywidgets.
"""

from course_utils.widgets.explorer import TrimmingExplorer, trimming_explorer
from course_utils.widgets.trace_stepper import TraceStepper, trace_stepper
from course_utils.widgets.trace_view import trace_view
from course_utils.widgets.trimming_view import consequences, trimming_view

__all__ = [
    "TraceStepper",
    "TrimmingExplorer",
    "consequences",
    "trace_stepper",
    "trace_view",
    "trimming_explorer",
    "trimming_view",
]
