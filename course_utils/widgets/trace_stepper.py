"""Previous and next over the steps of a run."""

from __future__ import annotations

from typing import Any

from course_utils.code_trace import as_run
from course_utils.errors import CourseError
from course_utils.widgets.trace_view import trace_view


class TraceStepper:
    """The widget, and what it shows at the moment.

    `widget` is the ipywidgets box; `place` (from 1) and `view` follow the buttons and the slider,
    and setting `place` moves them. Where no widget can be drawn (a code host, paper), the view
    takes its place, as it was when the cell ran.
    """

    def __init__(self, run: Any, place: int = 1) -> None:
        import ipywidgets

        self.run = as_run(run)
        self.view = trace_view(self.run, place)  # first: it names what is wrong with run or place
        self._slider = ipywidgets.IntSlider(
            value=place,
            min=1,
            max=len(self.run.steps),
            description="step",
            tooltip="Which step of the run is shown",
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(width="auto", max_width="360px", flex="1 1 200px"),
        )
        self._buttons = [
            ipywidgets.Button(description=name, tooltip=tip, layout=ipywidgets.Layout(width="auto"))
            for name, tip in (("◀ previous", "The step before"), ("next ▶", "The step after"))
        ]
        for button, way in zip(self._buttons, (-1, 1), strict=True):
            button.on_click(lambda _button, way=way: self._move(way))
        self._html = ipywidgets.HTML(value=self.view.html)
        controls = ipywidgets.Box(
            [self._buttons[0], self._buttons[1], self._slider],
            layout=ipywidgets.Layout(flex_flow="row wrap"),
        )
        self.widget = ipywidgets.VBox([controls, self._html])
        self._slider.observe(self._changed, names="value")

    @property
    def place(self) -> int:
        """Which step is shown, counted from 1."""
        return self._slider.value

    @place.setter
    def place(self, place: int) -> None:
        trace_view(self.run, place)  # names a place that is none; the slider would clip it
        self._slider.value = place

    def _move(self, way: int) -> None:
        # The buttons stay enabled at the ends: a disabled one would lose the keyboard's focus.
        self._slider.value = min(max(1, self.place + way), len(self.run.steps))

    def _changed(self, _change: Any) -> None:
        self.view = trace_view(self.run, self.place)
        self._html.value = self.view.html

    def __repr__(self) -> str:
        return self.view.text

    def _repr_mimebundle_(self, **_kinds: Any) -> dict[str, Any]:
        """The widget for those who can draw it, the view in HTML and text for the others."""
        drawn = self.widget._repr_mimebundle_() or {}
        return {**drawn, "text/html": self.view.html, "text/plain": self.view.text}


def trace_stepper(run: Any, place: int = 1) -> TraceStepper:
    """Step through a run: see what each step adds to the prompt and what is read again.

    Args:
        run: A CodeRun, a Trace, or what `run_agent` returns; one step or more.
        place: The step to begin with, counted from 1.

    Raises:
        CourseError: As `trace_view`, the static twin for one step. `course_utils.show.runs` has
            `steps_table`, the twin for all of them.

    >>> from course_utils.code_trace import CodeRun, CodeStep
    >>> trace_stepper(CodeRun("Hi", {}, (CodeStep(1, "Hello!"),), "Hello!")).place
    1
    """
    if not as_run(run).steps:
        raise CourseError("This run has no steps to step through.")
    return TraceStepper(run, place)
