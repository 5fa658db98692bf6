"""What recorded replies cost, and what a prefix cache saves:
python tests/benchmarks/course_speed.py [NN]

(a) Notebook NN (01 unless named) executed from recorded replies, against the same notebook with
    the model calls taken out: their results are handed over ready-made, so tokenizer, hashing,
    recordings and parsing of records cost nothing. Expected: at most 1.5 times as long.
(b) A live three-call tool dialogue through the engine with its prefix cache, against the same
    three prompts through a plain transformers text-generation pipeline, which reads everything
    again. Needs the weights (`make fetch`). Expected on a quiet machine: at least 3 times as fast.

One run, ratios; the seconds are those of this machine.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from course_utils.cli import places
from course_utils.cli.execution import Execution, _run_cells, kernel_environment
from course_utils.models.catalogue import have_weights, spec

MODEL = "qwen2.5-coder-1.5b"
ROUNDS = 3

KEEP = """
import pickle as _pickle
from course_utils.models import chat as _chat
_real, _kept = _chat.CourseModel.complete, []
def _complete(self, prompt, **settings):
    reply = _real(self, prompt, **settings)
    _kept.append(reply)
    return reply
_chat.CourseModel.complete = _complete
"""
STORE = "_pickle.dump(_kept, open({path!r}, 'wb'))"
GIVE = """
import pickle as _pickle
from course_utils.models import chat as _chat
_ready = iter(_pickle.load(open({path!r}, "rb")))
_chat.CourseModel.complete = lambda self, prompt, **settings: next(_ready)
"""


def seconds(path: Path, before: str = "", after: str = "") -> float:
    """How long a notebook takes, kernel start included, with a cell put before and after it."""
    import nbformat

    notebook = copy.deepcopy(nbformat.read(path, as_version=4))
    for position, source in ((0, before), (len(notebook.cells) + 1, after)):
        if source:
            notebook.cells.insert(position, nbformat.v4.new_code_cell(source))
    result = Execution(path, notebook)
    started = time.monotonic()
    _run_cells(result, kernel_environment({"COURSE_MODEL": "recorded"}))
    if result.failure:
        raise SystemExit(f"{path.name}: {result.failure}")
    return time.monotonic() - started


def recorded_cost(number: str) -> None:
    (path,) = places.choose([number])
    with tempfile.TemporaryDirectory() as folder:
        kept = str(Path(folder) / "replies.pickle")
        seconds(path, KEEP, STORE.format(path=kept))
        rounds = [(seconds(path), seconds(path, GIVE.format(path=kept))) for _ in range(ROUNDS)]
    recorded, without = (min(column) for column in zip(*rounds, strict=True))
    print(f"(a) {path.stem}: recorded {recorded:.1f} s, model calls taken out {without:.1f} s")
    print(f"    ratio {recorded / without:.2f} (best of {ROUNDS} each; expected at most 1.5)")


class Timed:
    """Keeps what a model was sent and how long it took."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.calls: list[tuple[list[int], int]] = []
        self.seconds = 0.0

    def chat(self, messages: Any, tools: Any = None, **settings: Any) -> Any:
        started = time.monotonic()
        reply = self.model.chat(messages, tools, **settings)
        self.seconds += time.monotonic() - started
        ids = self.model.encode(self.model.render(messages, tools))
        self.calls.append((ids, reply.output_tokens))
        return reply


def dialogue() -> Timed:
    """Weather, then an e-mail, then the answer: three calls of the live model."""
    from course_utils.messages import assistant, system, tool, user
    from course_utils.models import load
    from course_utils.tools import run_call
    from course_utils.tools import tool as make_tool

    def get_weather(city: str) -> dict:
        """Get the current weather of a city.

        Args:
            city: The name of the city.
        """
        return {"city": city, "temp_c": 2, "sky": "cloudy"}

    def send_email(to: str, text: str) -> str:
        """Send an e-mail.

        Args:
            to: The address of the reader.
            text: What to write.
        """
        return f"sent to {to}"

    tools = [make_tool(get_weather), make_tool(send_email)]
    model = Timed(load(MODEL, mode="live"))
    model.model.chat([user("Hi")], max_new_tokens=1)  # the weights are read before the clock starts
    messages = [
        system("You are a helpful assistant. Call a tool when you need information."),
        user("If it is colder than 5 degrees in Moscow, tell ana@example.com to take a jacket."),
    ]
    for _ in range(3):
        reply = model.chat(messages, tools, max_new_tokens=64)
        messages.append(assistant(reply.content, reply.tool_calls))
        messages += [tool(run_call(call, tools)) for call in reply.tool_calls]
    return model


def pipeline_seconds(calls: list[tuple[list[int], int]]) -> float:
    """The same prompts, and as many new tokens, through a text-generation pipeline."""
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig, pipeline

    from course_utils.models.engine import threads
    from course_utils.models.judge import convert
    from course_utils.models.tokenizer import tokenizer

    torch.set_num_threads(threads())
    tok = tokenizer(spec(MODEL).tokenizer)
    model = AutoModelForCausalLM.from_pretrained(convert(spec(MODEL)), dtype=torch.bfloat16)
    model.generation_config = GenerationConfig(do_sample=False, pad_token_id=tok.end_id)
    generate = pipeline("text-generation", model=model, tokenizer=tok.hf)
    generate("Hi", max_new_tokens=1)
    started = time.monotonic()
    for ids, count in calls:
        prompt = tok.decode(ids)
        generate(prompt, max_new_tokens=count, min_new_tokens=count, return_full_text=False)
    return time.monotonic() - started


def live_cost() -> None:
    if not have_weights(spec(MODEL)):
        print("(b) left out: the weights are not here (make fetch)")
        return
    live = dialogue()
    plain = pipeline_seconds(live.calls)
    tokens = [(len(ids), count) for ids, count in live.calls]
    print(f"(b) three calls, tokens in and out {tokens}")
    print(f"    engine with prefix cache {live.seconds:.1f} s, plain pipeline {plain:.1f} s")
    print(f"    ratio {plain / live.seconds:.1f} (expected at least 3 on a quiet machine)")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    recorded_cost(sys.argv[1] if len(sys.argv) > 1 else "01")
    live_cost()
