"""What can happen in a run: one small class for each kind of event, and their form on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Message, Reply, ToolCall


@dataclass(frozen=True)
class Started:
    """The run began: its id, the first messages, the names of its tools."""

    run_id: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replied:
    """The model replied. `context` is how many messages it was sent, `tools` what it was offered.

    `unreadable` holds a sentence for each call that could not be read; `seconds` is the time of
    the run so far.
    """

    step: int
    reply: Reply
    context: int = 0
    tools: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    seconds: float = 0.0

    def messages(self) -> tuple[Message, ...]:
        return (self.reply.message(),)


@dataclass(frozen=True)
class Told:
    """The loop told the model something that answers no call, as a user message."""

    step: int
    text: str

    def messages(self) -> tuple[Message, ...]:
        return (Message("user", self.text),)


@dataclass(frozen=True)
class Asked:
    """A person must decide about a call; `rule` says why."""

    step: int
    call: ToolCall
    rule: str
    effect: str
    open_world: bool = False


@dataclass(frozen=True)
class Decided:
    """One row of the audit trail: who decided what about which call, and why.

    `action` is allow, tell, approve, modify, reject, abort or void; `before` are the arguments
    that the decision is about, `after` those that may run (None: none may).
    """

    step: int
    call_id: str
    tool: str
    effect: str
    open_world: bool
    rule: str
    action: str
    who: str
    why: str
    before: dict[str, Any]
    after: dict[str, Any] | None = None


@dataclass(frozen=True)
class Began:
    """Written *before* a call that changes the world runs. Without a result after it, nobody
    knows whether the change happened."""

    step: int
    call: ToolCall
    key: str | None = None


@dataclass(frozen=True)
class Cleared:
    """A person looked: the call that had begun did not change anything and may run again."""

    step: int
    call_id: str
    who: str


@dataclass(frozen=True)
class Attempt:
    """A try that failed: the error, and the seconds that were waited after it."""

    error: str
    waited_s: float


@dataclass(frozen=True)
class Observed:
    """The one result of a call. `call` is what ran (a person may have changed its arguments).

    `source` says where the result comes from: *ran*, *failed*, *refused* (never ran), *rejected*
    (by the gate), *stored* (a repeated write), *not_run* (the run stopped before), *dry_run*.
    `note` is what the loop adds for the model. `happened` is yes, no or unknown, for calls that
    change the world.
    """

    step: int
    call: ToolCall
    content: str
    ok: bool
    source: str = "ran"
    note: str = ""
    happened: str = ""
    attempts: tuple[Attempt, ...] = ()

    def messages(self) -> tuple[Message, ...]:
        text = f"{self.content}\n{self.note}" if self.note else self.content
        return (Message("tool", text, tool_call_id=self.call.id, name=self.call.name),)


@dataclass(frozen=True)
class Stopped:
    """The run stopped: the name of the reason, and a sentence."""

    reason: str
    detail: str = ""
    seconds: float = 0.0


Event = Started | Replied | Told | Asked | Decided | Began | Cleared | Observed | Stopped
KINDS = {kind.__name__.lower(): kind for kind in Event.__args__}


# -- events as JSON ------------------------------------------------------------------------------


def to_json(event: Event) -> str:
    """An event as one line of JSON; `from_json` reads it back.

    >>> to_json(Stopped("answer"))
    '{"event": "stopped", "reason": "answer"}'
    """
    record = {"event": type(event).__name__.lower(), **_plain(event)}
    return json.dumps(record, ensure_ascii=False, default=_plain)


def from_json(line: str) -> Event:
    """Read an event; raises CourseError if the line holds none."""
    try:
        record = json.loads(line)
        kind = KINDS[record.pop("event")]
        return kind(**{name: _READ.get(name, _same)(value) for name, value in record.items()})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CourseError(f"This line is no event of a run: {line[:60]!r}.") from error


def _plain(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults (most do not: files stay small).

    Token ids and alternatives stay out: they are in the recordings.
    """
    if not is_dataclass(value):
        raise TypeError(f"A {type(value).__name__} cannot be saved as JSON.")
    skipped = ("ids", "alternatives", "parse_errors") if isinstance(value, Reply) else ()
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.name not in skipped
        and (field.default is MISSING or getattr(value, field.name) != field.default)
    }


def _same(value: Any) -> Any:
    return value


def _call(record: dict[str, Any]) -> ToolCall:
    return ToolCall(**record)


def _message(record: dict[str, Any]) -> Message:
    calls = tuple(_call(call) for call in record.pop("tool_calls", ()))
    return Message(**record, tool_calls=calls)


def _reply(record: dict[str, Any]) -> Reply:
    calls = tuple(_call(call) for call in record.pop("tool_calls", ()))
    return Reply(**record, tool_calls=calls)


_READ: dict[str, Callable[[Any], Any]] = {
    "messages": lambda records: tuple(_message(record) for record in records),
    "tools": tuple,
    "unreadable": tuple,
    "reply": _reply,
    "call": _call,
    "attempts": lambda records: tuple(Attempt(**record) for record in records),
}
