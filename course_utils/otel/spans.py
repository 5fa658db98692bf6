"""The spans of one run: the agent, its replies, its calls."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from opentelemetry.proto_json.common.v1.common import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto_json.trace.v1.trace import Span, Status

from course_utils.code_trace import Call, CodeRun, CodeStep, to_lines
from course_utils.messages import Message

# No durations are kept, because nothing that depends on the machine is: each reply and each call
# takes one second from the course's day on. The order is real, the times are not.
BEGIN = int(datetime(2026, 8, 10, tzinfo=UTC).timestamp()) * 10**9
SECOND = 10**9
INTERPRETER = "python_interpreter"  # smolagents' name for the tool that runs a step's code


class RunSpans:
    """The spans of one run, in the order in which they begin."""

    def __init__(self, run: CodeRun, content: bool, agent: str) -> None:
        self.content, self.now, self.spans = content, BEGIN, []
        self.model = run.model
        whole = hashlib.sha256("\n".join([agent, *to_lines(run)]).encode("utf-8")).digest()
        self.trace_id, self.seed = whole[:16], whole
        top = self._open(
            f"invoke_agent {agent}",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
            | self._model()
            | {
                "gen_ai.usage.input_tokens": run.tokens_in,
                "gen_ai.usage.output_tokens": run.tokens_out,
                "course.stop_reason": run.stop_reason,
                "course.origin": run.origin,
            },
        )
        if content:
            asked = [Message("user", run.task)]
            said = [] if run.answer is None else [Message("assistant", run.answer)]
            self._add_messages(top, asked, said)
        for step in run.steps:
            self._step(step, top)
        if run.stop_reason != "answer":
            _fail(top, run.stop_reason)
        self._close(top)

    def _model(self) -> dict[str, Any]:
        """Model and provider; of the known providers none is a model on the learner's machine."""
        return {"gen_ai.provider.name": "local"} | (
            {"gen_ai.request.model": self.model} if self.model else {}
        )

    def _step(self, step: CodeStep, top: Span) -> None:
        values = {"gen_ai.operation.name": "chat"} | self._model()
        values |= {
            "gen_ai.usage.input_tokens": step.tokens_in,
            "gen_ai.usage.output_tokens": step.tokens_out,
            "course.step": step.number,
            "course.step.kind": step.kind,
        }
        if step.cached:
            values["gen_ai.usage.cache_read.input_tokens"] = step.cached
        if step.origin:
            values["course.origin"] = step.origin
        said = self._open(f"chat {self.model}".strip(), values, top, Span.SpanKind.SPAN_KIND_CLIENT)
        if self.content:
            self._add_messages(said, list(step.added), [Message("assistant", step.text)])
        if step.unreadable:
            _fail(said, "unreadable_reply", step.error)
        self._close(said)
        if step.code is None:
            for call in step.calls:
                self._tool(call, top)
        else:
            self._program(step, top)

    def _program(self, step: CodeStep, top: Span) -> None:
        ran = self._open_tool(INTERPRETER, top)
        for call in step.calls:
            self._tool(call, ran)
        if self.content:
            _add(ran, "gen_ai.tool.call.arguments", json.dumps({"code": step.code}))
            _add(ran, "gen_ai.tool.call.result", step.observation)
        if step.error:
            _fail(ran, "code_error", step.error)
        self._close(ran)

    def _tool(self, call: Call, parent: Span) -> None:
        span = self._open_tool(call.name, parent)
        if self.content:
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            _add(span, "gen_ai.tool.call.arguments", arguments)
            if call.result is not None:
                _add(span, "gen_ai.tool.call.result", call.result)
        if not call.ok:
            _fail(span, "tool_error", call.result or "")
        self._close(span)

    def _open_tool(self, name: str, parent: Span) -> Span:
        values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        return self._open(f"execute_tool {name}", values | {"gen_ai.tool.type": "function"}, parent)

    def _open(
        self,
        name: str,
        values: dict[str, Any],
        parent: Span | None = None,
        kind: Span.SpanKind = Span.SpanKind.SPAN_KIND_INTERNAL,
    ) -> Span:
        number = len(self.spans).to_bytes(4, "big")
        span = Span(
            trace_id=self.trace_id,
            span_id=hashlib.sha256(self.seed + number).digest()[:8],
            parent_span_id=parent.span_id if parent else b"",
            name=name,
            kind=kind,
            start_time_unix_nano=self.now,
            attributes=attributes(values),
        )
        self.spans.append(span)
        return span

    def _close(self, span: Span) -> None:
        self.now = max(self.now, span.start_time_unix_nano + SECOND)
        span.end_time_unix_nano = self.now

    def _add_messages(self, span: Span, read: list[Message], said: list[Message]) -> None:
        system = [message for message in read if message.role == "system"]
        rest = [message for message in read if message.role != "system"]
        if system:
            parts = [{"type": "text", "content": message.content} for message in system]
            _add(span, "gen_ai.system_instructions", json.dumps(parts, ensure_ascii=False))
        for kind, messages in (("input", rest), ("output", said)):
            form = [_message(message, kind) for message in messages]
            _add(span, f"gen_ai.{kind}.messages", json.dumps(form, ensure_ascii=False))


def _message(message: Message, kind: str) -> dict[str, Any]:
    """A message in the form of the conventions' JSON schemas: a role and a list of parts."""
    if message.tool_call_id is not None:
        answer = {"type": "tool_call_response", "id": message.tool_call_id}
        parts: list[dict[str, Any]] = [answer | {"response": message.content}]
    else:
        parts = [{"type": "text", "content": message.content}] if message.content else []
        parts += [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    end = {"finish_reason": "stop"} if kind == "output" else {}
    return {"role": message.role, "parts": parts} | end


def attributes(values: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in values.items()]


def _add(span: Span, key: str, value: Any) -> None:
    span.attributes.append(KeyValue(key=key, value=_value(value)))


def _value(value: Any) -> AnyValue:
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[_value(item) for item in value]))
    if isinstance(value, int):
        return AnyValue(int_value=value)
    return AnyValue(string_value=str(value))


def _fail(span: Span, kind: str, message: str = "") -> None:
    span.status = Status(message=message, code=Status.StatusCode.STATUS_CODE_ERROR)
    _add(span, "error.type", kind)
