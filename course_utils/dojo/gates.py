"""The policies that are compared, from none to the one that looks at where arguments come from.

Each is a gate of the course (`course_utils.approval.Gate`): it sees a call, its tool, the user's
request and the outputs of tools so far, and nothing of the answer key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.approval import Decision, Gate, Policy, Request
from course_utils.dojo import derive
from course_utils.dojo.effects import DESTINATIONS
from course_utils.dojo.knowledge import Knowledge
from course_utils.dojo.records import Records
from course_utils.injection.gate import ProvenanceGate
from course_utils.injection.provenance import Ledger, Mark
from course_utils.messages import ToolCall
from course_utils.tools import Tool, content

Ask = Callable[[Request], Decision | None]
ALLOW_ALL = Policy(
    effects={"read": "allow", "reversible": "allow", "irreversible": "allow"}, open_world="allow"
)
ASK_ALL = Policy(
    effects={"read": "allow", "reversible": "ask", "irreversible": "ask"}, open_world="ask"
)


class SubstringGate(Gate):
    """Asks unless every destination is a part of the request's text: the obvious first idea.

    Its hole: the file '13' is a part of "June 13". A call without a destination is asked about.
    """

    def __init__(self, ask: Ask, request: str) -> None:
        super().__init__(ASK_ALL, ask)
        self._request = request.casefold()

    def review(self, step: int, call: ToolCall, tool: Tool) -> tuple[Decision | None, str]:
        """The decision about a call, and the rule behind it."""
        if self.policy.rule_for(tool)[0] == "ask" and self._named(call):
            return Decision("allow", "Its destinations are in the request.", "policy"), "substring"
        return super().review(step, call, tool)

    def _named(self, call: ToolCall) -> bool:
        values: list[Any] = []
        for name in DESTINATIONS.get(call.name, ()):
            value = call.arguments.get(name)
            values += value if isinstance(value, list) else [value] if value is not None else []
        return bool(values) and all(str(each).casefold() in self._request for each in values)


class RequestGate(ProvenanceGate):
    """Asks unless the request wants such an act, and everything with authority follows from it.

    The ledger's strict look-up comes first. What it does not find may follow from the request by
    one of the steps in `derive`, or be a record of the user's that the request means.

    Args:
        ask: Who is asked.
        request: What the user wrote.
        knowledge: What is known about the tools.
        own_words: Leave the wording of messages among colleagues to the model, unless something
            in it acts: a link, an address, a number.

    >>> gate = RequestGate(lambda request: None, "Write to Ana.", Knowledge())
    """

    def __init__(
        self, ask: Ask, request: str, knowledge: Knowledge, own_words: bool = False
    ) -> None:
        # strict: an address that the model made up is asked about like one from a page.
        super().__init__(ASK_ALL, ask, ledger=Ledger(request), strict=True)
        self.request, self.knowledge, self.own_words = request, knowledge, own_words
        self._asked_for = Ledger(request)  # sees no outputs, so its look-ups are quick
        self.records = Records(self._stands)
        self._listed: list[str] = []

    def saw(self, call: ToolCall, result: Any) -> None:
        """Take note of a tool's output (JSON values)."""
        self.ledger.saw(call.name, content(result))
        if call.name in self.knowledge.listings:
            self._listed.append(content(result))
        source = self.knowledge.sources.get(call.name)
        if source is not None:
            self.records.saw(source, result, self._asked_by_user(call))

    def foreign(self, call: ToolCall, tool: Tool) -> list[Mark]:
        """The values with authority that do not follow from the request."""
        act = self.knowledge.act(call.name)
        marks = self._asked_for.marks(call.arguments, act.authority(call.arguments))
        left = [
            # Only the person who is asked needs to know which output a value stands in.
            self.ledger.mark(mark.value, mark.path)
            for mark in marks
            if not self._follows(mark, call)
        ]
        if not derive.has_word(act.asks, self.request):
            left.append(Mark("act", call.name, "model"))
        return left

    def _follows(self, mark: Mark, call: ToolCall) -> bool:
        act, root = self.knowledge.act(call.name), mark.path.split("[")[0].split(".")[0]
        if mark.origin == "constant":
            return True
        if root in act.ids:  # the number 13 may stand in a request for any reason
            return self.records.has_id(mark.value)
        if root in act.codes:
            word = act.codes[root].get(str(mark.value))
            return word is not None and derive.has_word([word], self.request)
        if root in act.words and self.own_words and not derive.acts(mark.value):
            return True
        if mark.origin == "user":
            aims = root in self.knowledge.aims(call.name)
            return not (aims and derive.is_weak(mark.value, self.request))
        return (
            derive.is_when(mark.value, self.request)
            or self._is_end(mark, call)
            or derive.fills_blank(mark.value, self.request, self._listed)
            or self.records.copies(mark.value, self.request)
        )

    def _is_end(self, mark: Mark, call: ToolCall) -> bool:
        """An end whose start follows from the request, a known time later."""
        start = call.arguments.get(mark.path.replace("end", "start"))
        if "end" not in mark.path or not derive.is_when(start, self.request):
            return False
        lasts = derive.durations(self.request)
        for name in self.knowledge.act(call.name).ids:
            lasts = lasts | self.records.lasting(call.arguments.get(name))
        return derive.is_end(mark.value, start, lasts)

    def _stands(self, value: Any) -> bool:
        return self._asked_for.mark(value).origin == "user"

    def _asked_by_user(self, call: ToolCall) -> bool:
        marks = self._asked_for.marks(call.arguments)
        return bool(marks) and all(
            mark.origin in ("user", "constant") or derive.is_when(mark.value, self.request)
            for mark in marks
        )


POLICIES = {
    "no gate": "everything runs",
    "ask always": "ask about every call with a side effect",
    "destination": "ask unless the destination is a part of the request's text",
    "provenance": "ask unless the act is requested and all that has authority follows from it",
    "own words": "provenance, and messages to named colleagues may be in the model's own words",
}


def make_gate(policy: str, ask: Ask, request: str, knowledge: Knowledge) -> Gate:
    """A fresh gate for one run, by the name of its policy."""
    if policy == "no gate":
        return Gate(ALLOW_ALL, ask)
    if policy == "ask always":
        return Gate(ASK_ALL, ask)
    if policy == "destination":
        return SubstringGate(ask, request)
    return RequestGate(ask, request, knowledge, own_words=policy == "own words")
