"""A model that only recites: for "what if" and worst cases, always labelled *scripted*."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Reply
from course_utils.models.chat import Conversation, Tools, as_messages, log_reply
from course_utils.parsing import parse


class ScriptedModel:
    """Gives the replies of a list, one a call, whatever it is asked.

    `prompts` keeps the conversations that it was sent. It has no tokens, so all counts are 0.

    >>> scripted(["Hello!"]).chat([{"role": "user", "content": "Hi"}]).text
    'Hello!'
    """

    name = "scripted"

    def __init__(self, replies: Sequence[str | Reply]) -> None:
        self._replies = list(replies)
        self.prompts: list[list[Any]] = []

    def chat(self, messages: Conversation, tools: Tools | None = None, **settings: Any) -> Reply:
        """The next reply of the list; raises CourseError when none is left."""
        position = len(self.prompts)
        if position >= len(self._replies):
            raise CourseError(
                f"The script has {len(self._replies)} replies and was asked for one more."
            )
        self.prompts.append(as_messages(messages))
        reply = self._replies[position]
        if isinstance(reply, str):
            reply = Reply(text=reply, origin="scripted", model=self.name, content=reply)
            if tools:
                parsed = parse(reply.text)
                reply = replace(
                    reply,
                    content=parsed.content,
                    tool_calls=parsed.calls,
                    parse_errors=parsed.errors,
                )
        reply = replace(reply, origin="scripted")
        log_reply(reply)
        return reply


def scripted(replies: Sequence[str | Reply]) -> ScriptedModel:
    """A model that recites `replies`: texts, or Reply objects for full control."""
    return ScriptedModel(replies)
