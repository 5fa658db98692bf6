"""What happened in a run: events in the order in which they happened, never changed afterwards.

The state of an agent lives here and nowhere else. The conversation that the model is sent
(`Trace.messages`), the table that a person reads (`Trace.rows`) and the list of decisions
(`Trace.decisions`) are views: they are computed from the events. So saving a run is appending
its events to a file, and resuming it is reading them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from course_utils.errors import CourseError
from course_utils.events import (
    Asked,
    Attempt,
    Began,
    Cleared,
    Decided,
    Event,
    Observed,
    Replied,
    Started,
    Stopped,
    Told,
    from_json,
    to_json,
)
from course_utils.messages import Message, ToolCall

__all__ = [
    "Asked",
    "Attempt",
    "Began",
    "Cleared",
    "Decided",
    "Event",
    "Observed",
    "Replied",
    "Started",
    "Step",
    "Stopped",
    "Told",
    "Trace",
    "call_text",
    "count",
    "from_json",
    "shorten",
    "to_json",
]


@dataclass(frozen=True)
class Step:
    """One turn of the loop: what the model replied and what came of it."""

    number: int
    replied: Replied
    observed: tuple[Observed, ...] = ()
    told: tuple[Told, ...] = ()

    def messages(self) -> list[Message]:
        """The messages that this step added to the conversation."""
        return [
            message
            for event in (self.replied, *self.observed, *self.told)
            for message in event.messages()
        ]


class Trace:
    """The events of one run.

    `listener`, if given, is called with each new event: this is how a run is saved.

    >>> from course_utils.messages import Reply
    >>> trace = Trace([Started("r1", (Message("user", "Hi"),))])
    >>> trace.add(Replied(1, Reply("Hello!", "scripted", "by hand")))
    >>> [message.content for message in trace.messages]
    ['Hi', 'Hello!']
    """

    def __init__(
        self, events: Iterable[Event] = (), listener: Callable[[Event], None] | None = None
    ) -> None:
        self.events: list[Event] = []
        self.messages: list[Message] = []
        self.last_reply: Replied | None = None
        self.results: dict[str, Observed] = {}  # of the current step, by call id
        self.told = False  # in the current step
        self.listener = None
        for event in events:
            self.add(event)
        self.listener = listener

    def add(self, event: Event) -> None:
        """Append an event: to the file first, if there is one, then to the views."""
        if self.listener is not None:
            self.listener(event)
        self.events.append(event)
        if isinstance(event, Started):
            self.messages.extend(event.messages)
        elif isinstance(event, Replied | Told | Observed):
            self.messages.extend(event.messages())
        if isinstance(event, Replied):
            self.last_reply, self.results, self.told = event, {}, False
        elif isinstance(event, Observed):
            self.results[event.call.id] = event
        elif isinstance(event, Told):
            self.told = True

    # -- views -----------------------------------------------------------------------------------

    def of(self, *kinds: type) -> Iterator[Any]:
        """The events of some kinds, in order."""
        return (event for event in self.events if isinstance(event, kinds))

    @property
    def start(self) -> Started:
        """The first event; CourseError if there is none."""
        if not self.events or not isinstance(self.events[0], Started):
            raise CourseError("This trace is empty: it has no beginning to go on from.")
        return self.events[0]

    @property
    def stopped(self) -> Stopped | None:
        """How the run stopped, or None while it may go on."""
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Stopped) else None

    @property
    def steps(self) -> list[Step]:
        """The run, one Step for each reply of the model."""
        groups: list[list[Event]] = []
        for event in self.of(Replied, Observed, Told):
            if isinstance(event, Replied):
                groups.append([])
            groups[-1].append(event)
        return [
            Step(
                group[0].step,
                group[0],
                tuple(event for event in group if isinstance(event, Observed)),
                tuple(event for event in group if isinstance(event, Told)),
            )
            for group in groups
        ]

    @property
    def decisions(self) -> list[Decided]:
        """The audit trail."""
        return list(self.of(Decided))

    def open_calls(self) -> list[ToolCall]:
        """The calls of the last reply that have no result yet."""
        if self.last_reply is None:
            return []
        calls = self.last_reply.reply.tool_calls
        return [call for call in calls if call.id not in self.results]

    def tokens(self) -> int:
        """Tokens read and written by the model so far."""
        replies = (event.reply for event in self.of(Replied))
        return sum(reply.prompt_tokens + reply.output_tokens for reply in replies)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each call, answer or fault, ready for `course_utils.show.table`."""
        return [row for step in self.steps for row in _rows(step)]

    def __repr__(self) -> str:
        lines = [line for step in self.steps for line in _lines(step)]
        if self.stopped:
            lines.append(f"stopped: {self.stopped.reason}. {self.stopped.detail}".rstrip(" ."))
        return "\n".join(lines) or "(nothing happened yet)"


def shorten(text: str, length: int = 160) -> str:
    """A text on one line, cut at `length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def count(number: int, thing: str) -> str:
    """A number of things.

    >>> count(1, "step"), count(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def call_text(call: ToolCall) -> str:
    """A call as one would type it.

    >>> call_text(ToolCall("call_1", "get_weather", {"city": "Paris"}))
    'get_weather(city="Paris")'
    """
    if not isinstance(call.arguments, dict):
        return f"{call.name}({json.dumps(call.arguments, ensure_ascii=False, default=str)})"
    arguments = (
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}"
        for name, value in call.arguments.items()
    )
    return f"{call.name}({', '.join(arguments)})"


def _outcomes(step: Step) -> list[tuple[str, str]]:
    """(choice, observation) of a step, at least one pair."""
    asked = {call.id: call for call in step.replied.reply.tool_calls}
    pairs = []
    for event in step.observed:
        choice = call_text(asked.get(event.call.id, event.call))
        if choice != call_text(event.call):
            choice += f", changed to {call_text(event.call)}"
        pairs.append((choice, event.messages()[0].content))
    seen = {event.call.id for event in step.observed}
    pairs += [
        (call_text(call), "(no result yet)") for call in asked.values() if call.id not in seen
    ]
    pairs += [("(unreadable call)", event.text) for event in step.told]
    reply = step.replied.reply
    return pairs or [("answer", reply.content or reply.text or "(empty)")]


def _rows(step: Step) -> Iterator[dict[str, Any]]:
    reply = step.replied.reply
    for place, (choice, observation) in enumerate(_outcomes(step)):
        first = place == 0
        yield {
            "step": step.number,
            "messages": step.replied.context if first else None,
            "tools": len(step.replied.tools) if first else None,
            "choice": choice,
            "observation": observation,
            "tokens in": reply.prompt_tokens if first else None,
            "cached": reply.cached_tokens if first else None,
            "tokens out": reply.output_tokens if first else None,
            "origin": reply.origin,
        }


def _lines(step: Step) -> Iterator[str]:
    said = step.replied
    yield (
        f"step {step.number} · "
        f"{count(said.context, 'message')}, {count(len(said.tools), 'tool')} · "
        f"{said.reply.prompt_tokens} tokens in ({said.reply.cached_tokens} cached), "
        f"{said.reply.output_tokens} out · {said.reply.origin}"
    )
    for choice, observation in _outcomes(step):
        yield f"  {shorten(choice)} → {shorten(observation)}"
