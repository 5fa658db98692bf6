"""A stand-in for recordings and engine: replies are made by a function of the prompt text."""

from __future__ import annotations

from collections.abc import Callable

from course_utils.models import catalogue
from course_utils.models.chat import CourseModel
from course_utils.models.seam import Generation, Request, reply_text
from course_utils.models.tokenizer import tokenizer


class FakeSource:
    """Keeps the seam's promises (limit, stop strings, finish reasons) and the requests it got."""

    mode = "recorded"

    def __init__(self, reply: Callable[[str], str]) -> None:
        self.spec = catalogue.spec("qwen2.5-coder-0.5b")
        self.tok = tokenizer(self.spec.tokenizer)
        self.reply = reply
        self.requests: list[Request] = []

    def reply_ids(self, request: Request) -> list[int]:
        return self.tok.encode(self.reply(self.tok.decode(list(request.prompt_ids))))

    def generate(self, request: Request) -> Generation:
        self.requests.append(request)
        ids = self.reply_ids(request)
        finish = "stop"
        for length in range(1, min(len(ids), request.max_new_tokens) + 1):
            if any(mark in self.tok.decode(ids[:length]) for mark in request.stop):
                ids, finish = ids[:length], "stop_string"
                break
        if len(ids) > request.max_new_tokens or (
            finish == "stop" and len(ids) == request.max_new_tokens
        ):
            ids, finish = ids[: request.max_new_tokens], "length"
        return Generation(tuple(ids), reply_text(ids, request.stop, self.tok.decode), finish)


def fake_model(reply: Callable[[str], str] | str) -> CourseModel:
    """A CourseModel that answers with a function of the prompt, or always the same."""
    return CourseModel(FakeSource(reply if callable(reply) else lambda _: reply))


def name_recaller(prompt: str) -> str:
    """Knows Bob's name if the prompt tells it: memory of the conversation, made visible."""
    return "Your name is Bob." if "I'm Bob" in prompt else "I do not know your name."
