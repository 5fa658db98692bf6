"""Tool use without a tool template: Thought, Action, Observation, as plain text.

`ReAct` stands between the agent loop and a model that knows nothing of tools. It describes the
tools in the system message, stops the model before it writes an observation of its own, and reads
the Action as a call. The loop is the same one (source: Yao et al., "ReAct: Synergizing Reasoning
and Acting in Language Models", 2023).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from course_utils.messages import Message, Reply, ToolCall
from course_utils.parsing import ParseError, decode
from course_utils.tools import Tool

STOP = "Observation:"
FORMAT = """\
You can use these tools:

{tools}

Write exactly in this format:

Thought: what you need to do next
Action: the name of one tool
Action Input: its arguments, as one JSON object

The program then answers with the result:

Observation: the result of the tool

When you know the answer, write instead:

Thought: I know the answer.
Final Answer: the answer"""

# Models vary the marker; whatever they write, what follows it is invented.
_OBSERVATION = re.compile(r"[*_#\s]*\bobservation\b[*_]*\s*:", re.IGNORECASE)
_ACTION = re.compile(r"^[ \t]*Action[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_INPUT = re.compile(r"^[ \t]*Action Input[ \t]*:\s*(?:```(?:json)?\s*)?", re.MULTILINE)
_FINAL = re.compile(r"^[ \t]*Final Answer[ \t]*:[ \t]*", re.MULTILINE)
_THOUGHT = re.compile(r"^[ \t]*Thought[ \t]*:[ \t]*", re.MULTILINE)


class ReAct:
    """A front end for `run_agent`: a model that speaks Thought / Action / Observation.

    With `guard` (the default) the model stops at "Observation:", and should a server ignore the
    stop, the rest is cut off here: no observation is ever the model's own. Without it, a model
    may go on, invent the observation, and answer from what it has invented.

    >>> from course_utils.models import scripted
    >>> model = ReAct(scripted(['Action: now\\nAction Input: {}\\nObservation: 12:00']))
    >>> model.chat([Message("user", "How late is it?")]).tool_calls[0].name
    'now'
    """

    def __init__(self, model: Any, guard: bool = True) -> None:
        self.model, self.guard = model, guard
        self.name = getattr(model, "name", "model")

    def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **settings: Any
    ) -> Reply:
        """The model's next message, with its Action as a tool call."""
        if self.guard:
            settings["stop"] = (*_as_tuple(settings.get("stop", ())), STOP)
        reply = self.model.chat(as_text(messages, tools or ()), **settings)
        text = cut(reply.text) if self.guard else reply.text
        return read(replace(reply, text=text), first=self.guard)


def as_text(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """A conversation with tool calls as one that has only text.

    >>> as_text([Message("tool", "2 °C", tool_call_id="call_1")], [])[-1].content
    'Observation: 2 °C'
    """
    texts: list[Message] = []
    if tools:
        texts.append(Message("system", FORMAT.format(tools="\n".join(map(describe, tools)))))
    for message in messages:
        role, text = message.role, message.content
        if role == "tool":
            role, text = "user", f"{STOP} {text}"
        for call in message.tool_calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            text = f"Thought: {text}\nAction: {call.name}\nAction Input: {arguments}"
        if role == "system" and texts and texts[-1].role == "system":
            text, texts = f"{text}\n\n{texts[-1].content}", texts[:-1]
        elif texts and texts[-1].role == role:  # strict templates want the roles to alternate
            text, texts = f"{texts[-1].content}\n{text}", texts[:-1]
        texts.append(Message(role, text))
    return texts


def describe(tool: Tool) -> str:
    """A tool for the system message: name, arguments, what it does."""
    lines = [f"{tool.name}: {tool.description}"]
    required = tool.parameters.get("required", [])
    for name, schema in tool.parameters.get("properties", {}).items():
        kind = schema.get("type", "any") if isinstance(schema, dict) else "any"
        optional = "" if name in required else ", optional"
        about = schema.get("description", "") if isinstance(schema, dict) else ""
        lines.append(f"  {name} ({kind}{optional}): {about}".rstrip(": "))
    return "\n".join(lines)


def cut(text: str) -> str:
    """A text up to where the model begins to invent an observation.

    >>> cut("Action: now\\nAction Input: {}\\nObservation: 12:00")
    'Action: now\\nAction Input: {}'
    """
    found = _OBSERVATION.search(text)
    return text[: found.start()].rstrip() if found else text


def read(reply: Reply, first: bool = True) -> Reply:
    """A reply with the calls, the answer or the fault that its text holds.

    What comes first counts, an Action or a Final Answer; if not `first`, a Final Answer counts
    wherever it stands. Text without any marker is an answer.
    """
    text = reply.text
    action, final = _ACTION.search(text), _FINAL.search(text)
    if action and (final is None or (first and action.start() < final.start())):
        thought = _THOUGHT.sub("", text[: action.start()]).strip()
        call = _call(text, action)
        if isinstance(call, ParseError):
            return replace(reply, content=text, tool_calls=(), parse_errors=(call,))
        return replace(reply, content=thought, tool_calls=(call,), parse_errors=())
    if final:
        return replace(reply, content=text[final.end() :].strip(), tool_calls=(), parse_errors=())
    errors = ()
    if _THOUGHT.search(text):
        message = "The reply has neither an Action with an Action Input nor a Final Answer."
        errors = (ParseError("missing_name", message, len(text)),)
    return replace(reply, content=text, tool_calls=(), parse_errors=errors)


def _call(text: str, action: re.Match[str]) -> ToolCall | ParseError:
    name = action.group(1).strip("`*\"' ")
    given = _INPUT.search(text, action.end())
    if not name:
        return ParseError("missing_name", "Action names no tool.", action.start())
    if given is None:
        message = (
            f'Action: {name} needs an "Action Input:" line with a JSON object ({{}} if empty).'
        )
        return ParseError("bad_arguments", message, action.end())
    try:
        _, end = json.JSONDecoder().raw_decode(text, given.end())
        arguments = decode(text[given.end() : end])
    except (ValueError, RecursionError) as error:
        message = f"Action Input is not JSON: {error}."
        return ParseError("invalid_json", message, given.end())
    if not isinstance(arguments, dict):
        message = "Action Input must be a JSON object with the names of the arguments."
        return ParseError("bad_arguments", message, given.end())
    return ToolCall("call_1", name, arguments)


def _as_tuple(stop: str | Sequence[str]) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop)
