"""A run as JSON lines, one line for each thing that happened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from course_utils.code_trace.run import Call, CodeRun, CodeStep
from course_utils.errors import CourseError
from course_utils.messages import Message, ToolCall

LISTS = {"calls", "added"}  # of a step; each of theirs is a line of its own


def to_lines(run: CodeRun) -> Iterator[str]:
    """The run as lines of JSON: began, then per step read, replied, called and observed, ended.

    >>> next(to_lines(CodeRun("Hi", {"add": ""}, ())))
    '{"event": "began", "task": "Hi", "tools": {"add": ""}, "given": [], "model": ""}'
    """
    yield _line("began", task=run.task, tools=run.tools, given=list(run.given), model=run.model)
    for step in run.steps:
        for message in step.added:
            yield _line("read", step=step.number, message=asdict(message))
        values = {f.name: getattr(step, f.name) for f in fields(step) if f.name not in LISTS}
        seen = {name: values.pop(name) for name in ("observation", "error", "is_final")}
        yield _line("replied", **values)
        for call in step.calls:
            yield _line("called", step=step.number, **asdict(call))
        yield _line("observed", step=step.number, **seen)
    yield _line("ended", stop_reason=run.stop_reason, answer=run.answer)


def from_lines(lines: Iterable[str]) -> CodeRun:
    """Read what `to_lines` wrote; CourseError names the line that is no event of a run."""
    began: dict[str, Any] = {}
    ended: dict[str, Any] = {}
    steps: list[CodeStep] = []
    added: list[Message] = []
    calls: list[Call] = []
    said: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            event = record.pop("event")
            step = record.pop("step", None)
            if event == "began":
                began = record | {"given": tuple(record["given"])}
            elif event == "read":
                added.append(_message(**record["message"]))
            elif event == "replied":
                said = record
            elif event == "called":
                calls.append(Call(**record))
            elif event == "observed" and step == said["number"]:
                steps.append(CodeStep(**said, **record, calls=tuple(calls), added=tuple(added)))
                added, calls, said = [], [], {}
            elif event == "ended":
                ended = {"stop_reason": record["stop_reason"], "answer": record["answer"]}
            else:
                raise ValueError(event)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CourseError(f"Line {number} is no event of a run: {line[:60]!r}.") from error
    if not began or not ended:
        raise CourseError("This run has no beginning or no end: the file was cut.")
    return CodeRun(**began, **ended, steps=tuple(steps))


def load_run(path: Path | str) -> CodeRun:
    """Read a run that `CodeRun.save` wrote; CourseError if the file holds none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"No run can be read from {Path(path).name}: {error}.") from error
    # Only \n ends a line here; other line breaks may stand inside a text.
    return from_lines(line for line in text.split("\n") if line)


def _message(tool_calls: list[dict[str, Any]], **values: Any) -> Message:
    return Message(**values, tool_calls=tuple(ToolCall(**call) for call in tool_calls))


def _line(event: str, **values: Any) -> str:
    return json.dumps({"event": event, **values}, ensure_ascii=False)
