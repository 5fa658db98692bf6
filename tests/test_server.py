"""`chat` against a server: what is sent, what is read, and each way in which a server fails."""

import json
import socket

import pytest
from fault_server import FaultServer

from course_utils.agent import run_agent
from course_utils.errors import CourseError
from course_utils.messages import Message, ToolCall, user
from course_utils.models import load
from course_utils.models.server import NeedsTokens, ServerModel

DEEP = '{"x": ' + "[" * 900 + "]" * 900 + "}"
SCHEMA = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.fixture
def server(monkeypatch):
    for name in ("COURSE_SERVER_MODEL", "COURSE_API_KEY", "COURSE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with FaultServer() as server:
        yield server


def model_of(server, **settings):
    return ServerModel(server.address, "any", **{"timeout": 10, "retries": 1, **settings})


def test_native_calls_counts_and_opaque_fields_are_read(server):
    reply = model_of(server).chat([user("Weather?")], [SCHEMA])
    assert reply.tool_calls == (ToolCall("call_a", "get_weather", {"city": "Paris"}),)
    assert [error.kind for error in reply.parse_errors] == ["invalid_json"]
    assert (reply.prompt_tokens, reply.cached_tokens, reply.output_tokens) == (7, 3, 5)
    assert (reply.origin, reply.finish_reason, reply.model) == ("live", "tool_calls", "tiny")
    assert reply.opaque == {"reasoning_signature": "c2lnbmVk"}


def test_the_conversation_goes_out_in_wire_format_with_opaque_fields_untouched(server):
    call = ToolCall("call_a", "f", {"x": "Ж"})
    history = [
        user("Hi"),
        Message("assistant", "", (call,), opaque={"reasoning_signature": "c2lnbmVk"}),
        Message("tool", "2", tool_call_id="call_a", name="f"),
    ]
    model_of(server).chat(history, [SCHEMA], stop="\n", max_new_tokens=9)
    (sent,) = server.requests
    assert sent["messages"][1]["reasoning_signature"] == "c2lnbmVk"
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"x": "Ж"}'
    assert sent["messages"][2] == {"role": "tool", "content": "2", "tool_call_id": "call_a"}
    assert (sent["stop"], sent["max_tokens"], sent["tools"]) == (["\n"], 9, [SCHEMA])


def test_load_takes_an_address(server, monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", server.address)
    assert load().chat([user("x")]).model == "tiny"


def test_too_many_requests_is_tried_again_after_the_time_that_the_server_names(server):
    server.faults = [(429, {"Retry-After": "0.1"}, b"{}")]
    assert model_of(server).chat([user("x")]).origin == "live"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("fault", "words", "requests"),
    [
        ((401, {}, b'{"error": {"message": "bad key"}}'), "refused the key.*COURSE_API_KEY", 1),
        ((429, {"Retry-After": "0.1"}, b"{}"), "over its limit", 2),
        ((500, {}, b'{"error": {"message": "out of memory"}}'), "500.*out of memory", 2),
        ((400, {}, b'{"error": {"message": "no tools here"}}'), "400.*no tools here", 1),
        ((200, {}, b"<html>hello</html>"), "not JSON|no chat completion", 1),
        ((200, {"Content-Type": "text/html"}, b"<html>"), "no chat completion", 1),
        ((200, {}, b'{"hello": 1}'), "no chat completion", 1),
        ((200, {}, b"[]"), "no chat completion", 1),
        ((200, {}, b"null"), "no chat completion", 1),
        ((200, {}, b"\xff\xfe\x00"), "not JSON", 1),
        ((200, {}, b'{"choices": "abc"}'), "no chat completion", 1),
        ((200, {}, b'{"choices": []}'), "no chat completion", 1),
        ((200, {}, b'{"choices": {"a": 1}}'), "no chat completion", 1),
        ((200, {}, b'{"choices": [null]}'), "no chat completion", 1),
        ((200, {}, b'{"choices": [{}]}'), "no chat completion", 1),
        ((200, {}, b'{"choices": [{"message": "hi"}]}'), "no chat completion", 1),
        ((200, {}, b'{"choices": [{"message": {"tool_calls": "f()"}}]}'), "no chat completion", 1),
    ],
)
def test_each_fault_is_one_clear_error_after_a_bounded_number_of_tries(
    server, fault, words, requests
):
    server.faults = [fault] * 5
    with pytest.raises(CourseError, match=words) as caught:
        model_of(server).chat([user("x")])
    assert len(server.requests) == requests
    assert server.address in str(caught.value)


def answer(message, **others):
    return 200, {}, json.dumps({"choices": [{"message": message}], **others}).encode()


@pytest.mark.parametrize(
    ("call", "arguments", "kind"),
    [
        ({"function": {"name": "f", "arguments": {"x": 1}}}, {"x": 1}, None),
        ({"id": None, "function": {"name": "f"}}, {}, None),
        ({"function": {"name": "f", "arguments": ""}}, {}, None),
        ({"function": {"name": "f", "arguments": "[1]"}}, None, "bad_arguments"),
        ({"function": {"name": "f", "arguments": [1]}}, None, "bad_arguments"),
        ({"function": {"name": "f", "arguments": '{"x": NaN}'}}, None, "invalid_json"),
        ({"function": {"name": "f", "arguments": '{"x": "\\ud800"}'}}, None, "invalid_json"),
        ({"function": {"name": "f", "arguments": "[" * 9_000}}, None, "invalid_json"),
        ({"function": {"name": "f", "arguments": DEEP}}, None, "invalid_json"),
        ({"function": {"name": None, "arguments": "{}"}}, None, "missing_name"),
        ({"function": None}, None, "missing_name"),
        ({"id": "call_a"}, None, "missing_name"),
    ],
)
def test_calls_as_servers_really_send_them(server, call, arguments, kind):
    server.faults = [answer({"content": "a", "tool_calls": [call]})]
    reply = model_of(server).chat([user("x")], [SCHEMA])
    expected = () if arguments is None else (ToolCall("call_1", "f", arguments),)
    assert reply.tool_calls == expected
    assert [error.kind for error in reply.parse_errors] == ([kind] if kind else [])


@pytest.mark.parametrize("usage", [None, {}, "many", {"prompt_tokens": None}])
def test_a_server_that_does_not_count_tokens_is_no_fault_of_the_loop(server, usage):
    server.faults = [answer({"content": "Hello."}, usage=usage)]
    run = run_agent(model_of(server), [], "Hi")
    assert (run.answer, run.tokens) == ("Hello.", 0)


def test_an_answer_that_makes_no_sense_stops_the_loop_and_does_not_leave_it(server):
    server.faults = [(200, {}, b'{"choices": [null]}')]
    run = run_agent(model_of(server), [], "Hi")
    assert run.stop_reason == "error" and server.address in run.detail


@pytest.mark.parametrize("body", [b"<html>", b"null", b"[]", b'{"data": null}', b'{"data": [1]}'])
def test_a_list_of_models_that_is_none_is_one_clear_error(server, body):
    server.listing = body
    with pytest.raises(CourseError, match="not JSON|no list of models"):
        model_of(server).chat([user("x")])


@pytest.mark.parametrize("key", ["ключ", "a\nb"])
def test_a_key_that_cannot_be_sent_is_named(server, monkeypatch, key):
    monkeypatch.setenv("COURSE_API_KEY", key)
    with pytest.raises(CourseError, match="COURSE_API_KEY"):
        model_of(server)


def test_a_silent_server_is_given_up(server):
    server.faults = [(0, {}, b"")] * 5
    with pytest.raises(CourseError, match="did not answer within 0.3 seconds"):
        model_of(server, timeout=0.3, retries=0).chat([user("x")])
    assert len(server.requests) == 1


def test_a_refused_connection_names_the_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    with pytest.raises(CourseError, match=f"No server answers at {address}"):
        ServerModel(address, "any", retries=0).chat([user("x")])


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.encode("x"),
        lambda m: m.decode([1]),
        lambda m: m.render([user("x")]),
        lambda m: m.count([user("x")]),
        lambda m: m.complete("x"),
        lambda m: m.pipeline(),
        lambda m: m.tokenizer,
        lambda m: m.chat([user("x")], top_k=5),
    ],
)
def test_what_needs_tokens_raises_one_named_error(server, use):
    with pytest.raises(NeedsTokens, match="load\\(mode='auto'\\)"):
        use(model_of(server))


def test_a_model_must_be_named_where_the_server_has_several(server, monkeypatch):
    server.models = ["a", "b"]
    with pytest.raises(CourseError, match="no model 'any'. It has: a, b. Name one"):
        model_of(server).chat([user("x")])
    monkeypatch.setenv("COURSE_SERVER_MODEL", "b")
    assert model_of(server).chat([user("x")]).model == "b"
    monkeypatch.setenv("COURSE_SERVER_MODEL", "c")
    with pytest.raises(CourseError, match="no model 'c'"):
        model_of(server).chat([user("x")])
