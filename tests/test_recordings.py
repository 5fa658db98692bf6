"""Recordings and the three modes, with a stand-in engine where a live reply is needed."""

import json

import pytest

from course_utils.errors import CourseError
from course_utils.messages import Alternative, user
from course_utils.models import catalogue, source
from course_utils.models.chat import CourseModel, load
from course_utils.models.recordings import (
    Recordings,
    generation_of,
    make_record,
    read_file,
    request_of,
)
from course_utils.models.seam import Generation, Request
from course_utils.models.source import PromptTooLong, RecordingMissing, Source
from course_utils.models.tokenizer import tokenizer

SPEC = catalogue.spec("qwen2.5-coder-0.5b")
TOK = tokenizer(SPEC.tokenizer)
ROW = (Alternative(9707, "Hello", -0.1), Alternative(13048, "Hi", -2.5))


def recorded(prompt="Hi there", text="Hello", **settings):
    request = Request(tuple(TOK.encode(prompt)), **settings)
    rows = (ROW,) * (len(TOK.encode(text)) + 1)
    generation = Generation(tuple(TOK.encode(text)), text, "stop", rows)
    return request, make_record(request, generation, SPEC, TOK, "test engine")


def write(path, *records):
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), "utf-8")


class Engine:
    """Answers every request with the same word and counts how often it was asked."""

    version = "1"

    def __init__(self):
        self.requests = []

    def generate(self, request):
        self.requests.append(request)
        rows = (ROW[: request.top_k],) if request.top_k else ()
        return Generation((9707,), "Hello", "length", rows, origin="live")


@pytest.fixture
def engine(monkeypatch):
    engine = Engine()
    monkeypatch.setattr(source, "engine_for", lambda spec, cache: engine)
    monkeypatch.setattr(source, "have_weights", lambda spec: True)
    for name in ("COURSE_RECORD_TO", "COURSE_RECORD_REUSE", "COURSE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return engine


def test_a_record_gives_back_its_request_and_reply():
    request, record = recorded(stop=("\n",), seed=3, temperature=0.5)
    assert request_of(record, TOK) == request
    reply = generation_of(record, TOK, top_k=1)
    assert (reply.text, reply.finish_reason, reply.origin) == ("Hello", "stop", "recorded")
    assert [len(row) for row in reply.alternatives] == [1, 1]


def test_ids_are_stored_only_where_the_text_would_not_give_them_back():
    _, plain = recorded("<|im_end|>")
    assert "prompt_ids" not in plain
    ids = tuple(TOK.encode("<|im_") + TOK.encode("end|>"))
    spelled = make_record(Request(ids), Generation((1,), '"', "length"), SPEC, TOK, "test engine")
    assert spelled["prompt_ids"] == list(ids)
    assert request_of(spelled, TOK).prompt_ids == ids


def test_look_ups_search_every_file(tmp_path):
    (first, a), (second, b) = recorded("one"), recorded("two")
    write(tmp_path / "01_a.jsonl", a)
    write(tmp_path / "02_b.jsonl", b)
    found = Recordings(tmp_path)
    assert found.find(first.key(SPEC.sha256))["file"] == "01_a.jsonl"
    assert found.find(second.key(SPEC.sha256))["file"] == "02_b.jsonl"
    assert found.find(second.key(SPEC.sha256), top_k=3) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [("{", "Expecting"), ("[1]", "lacks"), ('{"key": "k"}', "lacks model"), ("3", "int")]
    + [
        (json.dumps({**recorded()[1], name: None}), f"wrong type of {name}")
        for name in ("key", "model", "prompt", "text", "ids", "finish_reason", "settings")
    ],
)
def test_a_corrupt_line_is_named_with_its_file(tmp_path, line, why):
    path = tmp_path / "03_x.jsonl"
    _, good = recorded()
    path.write_text(json.dumps(good) + "\n" + line + "\n", "utf-8")
    with pytest.raises(CourseError, match=f"Line 2 of data/recordings/03_x.jsonl.*{why}"):
        read_file(path)


def test_recorded_mode_explains_a_miss_in_three_lines(tmp_path, engine):
    write(tmp_path / "01_a.jsonl", recorded("The weather in Moscow today")[1])
    recordings = Recordings(tmp_path)
    with pytest.raises(RecordingMissing) as caught:
        Source(SPEC, "recorded", recordings).generate(
            Request(tuple(TOK.encode("The weather in Madrid today")))
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "01_a.jsonl" in lines[0] and "Moscow" in lines[1] and "Madrid" in lines[2]
    assert engine.requests == []


def test_a_miss_of_settings_only_names_the_settings(tmp_path, engine):
    request, record = recorded("same prompt", max_new_tokens=8)
    write(tmp_path / "01_a.jsonl", record)
    with pytest.raises(RecordingMissing, match="max_new_tokens=8\n.*max_new_tokens=9"):
        Source(SPEC, "recorded", Recordings(tmp_path)).generate(
            Request(request.prompt_ids, max_new_tokens=9)
        )


def test_auto_answers_from_recordings_and_goes_live_on_a_miss(tmp_path, engine):
    request, record = recorded()
    write(tmp_path / "01_a.jsonl", record)
    auto = Source(SPEC, "auto", Recordings(tmp_path))
    assert auto.generate(request).origin == "recorded"
    assert auto.generate(Request((1, 2))).origin == "live"
    assert len(engine.requests) == 1


def test_live_never_reads_recordings(tmp_path, engine):
    request, record = recorded()
    write(tmp_path / "01_a.jsonl", record)
    assert Source(SPEC, "live", Recordings(tmp_path)).generate(request).origin == "live"


def test_without_weights_auto_says_in_two_lines_what_to_type(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(source, "have_weights", lambda spec: False)
    with pytest.raises(RecordingMissing) as caught:
        Source(SPEC, "auto", Recordings(tmp_path)).generate(Request((1, 2)))
    assert len(str(caught.value).splitlines()) == 2
    assert "make fetch" in str(caught.value) and SPEC.name in str(caught.value)


def test_a_prompt_that_does_not_fit_is_refused_before_it_is_sent(engine):
    with pytest.raises(PromptTooLong, match="16300 tokens.*16128 fit"):
        Source(SPEC, "live").generate(Request((1,) * 16_300))
    assert engine.requests == []


def test_recording_generates_each_request_once_and_keeps_it(tmp_path, engine, monkeypatch):
    target = tmp_path / "new.jsonl"
    monkeypatch.setenv("COURSE_RECORD_TO", str(target))
    live = Source(SPEC, "live", Recordings(tmp_path / "none"))
    for _ in range(2):
        assert live.generate(Request((1, 2))).text == "Hello"
    assert len(engine.requests) == 1
    (kept,) = read_file(target)
    assert kept["engine"] == "llama.cpp (xllamacpp 1)"


def test_recording_again_for_candidates_keeps_the_richer_record(tmp_path, engine, monkeypatch):
    target = tmp_path / "new.jsonl"
    monkeypatch.setenv("COURSE_RECORD_TO", str(target))
    live = Source(SPEC, "live", Recordings(tmp_path / "none"))
    live.generate(Request((1, 2)))
    live.generate(Request((1, 2), top_k=2))
    monkeypatch.delenv("COURSE_RECORD_TO")
    key = Request((1, 2)).key(SPEC.sha256)
    assert Recordings(tmp_path).find(key, top_k=2) is not None


def test_reuse_takes_over_what_is_recorded_already(tmp_path, engine, monkeypatch):
    request, record = recorded()
    write(tmp_path / "01_a.jsonl", record)
    monkeypatch.setenv("COURSE_RECORD_TO", str(tmp_path / "new.jsonl.part"))
    monkeypatch.setenv("COURSE_RECORD_REUSE", "1")
    Source(SPEC, "live", Recordings(tmp_path)).generate(request)
    assert engine.requests == []
    assert [r["key"] for r in read_file(tmp_path / "new.jsonl.part")] == [record["key"]]


@pytest.mark.parametrize("mode", ["recordde", "ftp://host", "LIVE"])
def test_a_mode_typo_is_named(mode, monkeypatch):
    with pytest.raises(CourseError, match=f"not '{mode}'"):
        load(mode=mode)
    monkeypatch.setenv("COURSE_MODEL", mode)
    with pytest.raises(CourseError, match="COURSE_MODEL"):
        load()


def test_an_unknown_model_is_named_with_the_known_ones():
    with pytest.raises(CourseError, match=r"qwen-9b.*qwen2\.5-coder-1\.5b"):
        load("qwen-9b")


def test_chat_counts_tokens_and_the_common_prefix(engine):
    model = CourseModel(Source(SPEC, "live"))
    first = [user("Hi! I'm Bob")]
    longer = [*first, {"role": "assistant", "content": "Hello"}, user("What's my name?")]
    one, two = model.chat(first), model.chat(longer)
    assert one.prompt_tokens == model.count(first) and one.cached_tokens == 0
    assert two.prompt_tokens == model.count(longer)
    # All but the reply marker's continuation is shared: the marker is where the answer then stands.
    assert two.cached_tokens == one.prompt_tokens


def test_calls_are_looked_for_only_when_tools_are_offered(monkeypatch, engine):
    text = '{"name": "f", "arguments": {}}'
    monkeypatch.setattr(
        engine, "generate", lambda request: Generation((1,), text, "stop", origin="live")
    )
    model = CourseModel(Source(SPEC, "live"))
    schema = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    assert model.chat([user("x")]).tool_calls == ()
    assert [call.name for call in model.chat([user("x")], [schema]).tool_calls] == ["f"]


@pytest.mark.parametrize("conversation", [[], "Hi", [{"content": "no role"}]])
def test_a_broken_conversation_is_refused(conversation, engine):
    with pytest.raises(CourseError):
        CourseModel(Source(SPEC, "live")).chat(conversation)


def test_every_reply_is_logged_for_the_runner(tmp_path, engine, monkeypatch):
    log = tmp_path / "replies.jsonl"
    monkeypatch.setenv("COURSE_REPLY_LOG", str(log))
    CourseModel(Source(SPEC, "live")).chat([user("x")])
    assert json.loads(log.read_text()) == {"origin": "live", "model": SPEC.name}
