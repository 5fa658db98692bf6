"""The engine's settings and failures; its replies are tested in tests/live with real weights."""

import dataclasses
import json
import subprocess
import sys

import httpx
import pytest

from course_utils.errors import CourseError
from course_utils.models import catalogue
from course_utils.models import engine as module
from course_utils.models.engine import Engine, threads
from course_utils.models.seam import Request
from course_utils.models.tokenizer import tokenizer

SPEC = catalogue.spec("qwen2.5-coder-0.5b")
TOK = tokenizer(SPEC.tokenizer)
ONE_TWO = TOK.encode("one two three")


@pytest.fixture
def ask(monkeypatch):
    """A function that lets an engine read one answer of the server; gives reply and request."""
    wait = [sys.executable, "-c", "input()"]
    process = subprocess.Popen(wait, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    monkeypatch.setattr(module, "_start", lambda spec: (process, "http://127.0.0.1", "1", "key"))

    def ask_once(answer, request, cache=True, status=200):
        sent = []

        def handle(http):
            sent.append(json.loads(http.content))
            return httpx.Response(status, json=answer)

        engine = Engine(SPEC, cache=cache)
        engine._http = httpx.Client(transport=httpx.MockTransport(handle), base_url="http://x")
        return engine.generate(request), sent[0]

    yield ask_once
    process.stdin.close()
    process.wait(5)


@pytest.mark.parametrize(
    ("stop_type", "tokens", "ids", "text", "finish"),
    [
        ("eos", [*ONE_TWO, TOK.end_id], ONE_TWO, "one two three", "stop"),
        ("limit", ONE_TWO, ONE_TWO, "one two three", "length"),
        ("word", ONE_TWO, ONE_TWO, "one two ", "stop_string"),
    ],
)
def test_ids_say_where_it_ended_and_text_leaves_the_stop_string_out(
    ask, stop_type, tokens, ids, text, finish
):
    stop = ("three",) if stop_type == "word" else ()
    reply, sent = ask({"stop_type": stop_type, "tokens": tokens}, Request((1, 2), stop=stop))
    assert (list(reply.ids), reply.text, reply.finish_reason) == (ids, text, finish)
    assert (sent["prompt"], sent["stop"], sent["return_tokens"]) == ([1, 2], list(stop), True)


@pytest.mark.parametrize("cache", [True, False])
def test_the_prompt_cache_is_as_asked(ask, cache):
    _, sent = ask({"stop_type": "limit", "tokens": ONE_TWO}, Request((1,)), cache=cache)
    assert sent["cache_prompt"] is cache


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ({"stop_type": "tired", "tokens": []}, 200, "unknown way: 'tired'"),
        ({"error": {"message": "grammar too large"}}, 400, "refused.*grammar too large"),
        ([], 503, "refused.*HTTP 503"),
    ],
)
def test_an_answer_that_is_no_reply_is_one_sentence(ask, answer, status, words):
    with pytest.raises(CourseError, match=words):
        ask(answer, Request((1,)), status=status)


def test_threads_follow_the_setting(monkeypatch):
    monkeypatch.setenv("COURSE_THREADS", "3")
    assert threads() == 3
    monkeypatch.delenv("COURSE_THREADS")
    assert 1 <= threads() <= 4


@pytest.mark.parametrize("setting", ["0", "two", "-1", "1.5"])
def test_a_wrong_thread_setting_is_named(monkeypatch, setting):
    monkeypatch.setenv("COURSE_THREADS", setting)
    with pytest.raises(CourseError, match=f"COURSE_THREADS.*not '{setting}'"):
        threads()


def test_a_file_that_is_no_model_gives_one_sentence_and_leaves_no_process(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "broken.gguf").write_bytes(b"not a model" * 100)
    with pytest.raises(CourseError, match=r"could not load broken\.gguf.*fetch qwen2\.5-coder-0"):
        Engine(dataclasses.replace(SPEC, file="broken.gguf"))
    assert capfd.readouterr() == ("", "")
