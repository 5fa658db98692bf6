"""A finished run of an agent as data: what each step read, wrote, called, saw and cost.

    from course_utils.code_trace import CodeRun, as_run, load_run, read_run

`read_run` reads a smolagents agent after its run, `as_run` also a trace of the course's own loop.
The claim check, the OpenTelemetry export, the pictures and the stepper all read this one form.
"""

from course_utils.code_trace.names import Invented, invented_names
from course_utils.code_trace.own_loop import as_run
from course_utils.code_trace.run import Call, CodeRun, CodeStep, goes_on
from course_utils.code_trace.saved import from_lines, load_run, to_lines
from course_utils.code_trace.smolagents_memory import read_run

__all__ = [
    "Call",
    "CodeRun",
    "CodeStep",
    "Invented",
    "as_run",
    "from_lines",
    "goes_on",
    "invented_names",
    "load_run",
    "read_run",
    "to_lines",
]
