"""A slider for the budget and a switch for each rule, over what trimming does to a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_utils.memory.explain import Rules
from course_utils.memory.history import role_of
from course_utils.widgets.trimming_view import trimming_view

SWITCHES = {
    "newest_first": "newest first",
    "keep_system": "system message always",
    "whole_messages": "whole messages only",
    "start_with_user": "begin with a user message",
    "keep_pairs": "call and result together",
}


class TrimmingExplorer:
    """The widget, and what it shows at the moment.

    `widget` is the ipywidgets box; `budget`, `rules` and `view` follow the slider and the switches.
    Setting `budget` or `rules` moves them. Where no widget can be drawn (a code host, paper), the
    view takes its place, as it was when the cell ran.
    """

    def __init__(
        self, messages: Sequence[Any], costs: Sequence[int], budget: int, rules: Rules
    ) -> None:
        import ipywidgets

        # Read first: it names what is wrong with messages, costs or budget.
        self.view = trimming_view(messages, costs, budget, rules)
        self._messages, self._costs, self._rules = list(messages), list(costs), rules
        self._slider = ipywidgets.IntSlider(
            value=budget,
            min=0,
            max=max(sum(self._costs), budget),
            description="budget",
            tooltip="Tokens that the kept messages may have together",
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(width="auto", max_width="640px"),
        )
        has_results = any(role_of(message) == "tool" for message in self._messages)
        self._switches = {
            name: ipywidgets.Checkbox(
                value=getattr(rules, name),
                description=label,
                indent=False,
                layout=ipywidgets.Layout(width="auto", margin="0 16px 0 4px"),
            )
            for name, label in SWITCHES.items()
            if name != "keep_pairs" or has_results
        }
        self._html = ipywidgets.HTML(value=self.view.html)
        switches = ipywidgets.Box(
            list(self._switches.values()), layout=ipywidgets.Layout(flex_flow="row wrap")
        )
        self.widget = ipywidgets.VBox([self._slider, switches, self._html])
        for control in (self._slider, *self._switches.values()):
            control.observe(self._changed, names="value")

    @property
    def budget(self) -> int:
        """Tokens, as the slider stands."""
        return self._slider.value

    @budget.setter
    def budget(self, tokens: int) -> None:
        self._slider.value = tokens

    @property
    def rules(self) -> Rules:
        """The rules, as the switches stand; one without a switch stays as it was given."""
        values = {name: switch.value for name, switch in self._switches.items()}
        return Rules(**({"keep_pairs": self._rules.keep_pairs} | values))

    @rules.setter
    def rules(self, rules: Rules) -> None:
        self._rules = rules
        for name, switch in self._switches.items():
            switch.value = getattr(rules, name)

    def _changed(self, _change: Any) -> None:
        self.view = trimming_view(self._messages, self._costs, self.budget, self.rules)
        self._html.value = self.view.html

    def __repr__(self) -> str:
        return self.view.text

    def _repr_mimebundle_(self, **_kinds: Any) -> dict[str, Any]:
        """The widget for those who can draw it, the view in HTML and text for the others."""
        drawn = self.widget._repr_mimebundle_() or {}
        return {**drawn, "text/html": self.view.html, "text/plain": self.view.text}


def trimming_explorer(
    messages: Sequence[Any], costs: Sequence[int], budget: int, rules: Rules | None = None
) -> TrimmingExplorer:
    """Explore trimming: move the budget, switch rules off, see what is kept, dropped and why.

    Args:
        messages: Message objects, wire-format dicts or LangChain messages; one or more.
        costs: Tokens, one number a message: `TokenCounter.costs(messages)`, or made up.
        budget: Where the slider stands first, in tokens.
        rules: How the switches stand first; default all on. The fifth, for tool calls and their
            results, is there only if the conversation has results.

    Raises:
        CourseError: As `trimming_view`, its static twin, which takes the same arguments.

    >>> trimming_explorer([{"role": "user", "content": "Hi"}], [5], 9).budget
    9
    """
    return TrimmingExplorer(messages, costs, budget, rules or Rules())
