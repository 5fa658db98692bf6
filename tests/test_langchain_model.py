"""The course's chat model keeps what LangChain and LangGraph rely on."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_source import fake_model, name_recaller
from fault_server import FaultServer
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from pydantic import BaseModel, Field

from course_utils import messages as m
from course_utils.errors import CourseError
from course_utils.memory import TokenCounter
from course_utils.messages import ToolCall
from course_utils.models import load, scripted
from course_utils.models.langchain_model import CourseChat
from course_utils.models.server import NeedsTokens
from course_utils.tools import tool

CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "door"}}\n</tool_call>'
TWO = f'I look.\n{CALL}\n{{"name": "look", "arguments": {{"at": "Ж"}}}}'


def look(at: str) -> str:
    """Look at something.

    Args:
        at: What to look at.
    """
    return f"a {at}"


class Answer(BaseModel):
    """The answer."""

    name: str = Field(description="A name.")


def chat_of(reply, **fields):
    model = fake_model(reply)
    return model.langchain(**fields), model


def only_request(model):
    (request,) = model.source.requests
    return request


# --- messages in, message out ---------------------------------------------------------------


def test_the_prompt_is_the_courses_own():
    chat, model = chat_of("Hello.")
    chat.invoke(
        [
            SystemMessage("Be brief."),
            HumanMessage([{"type": "text", "text": "Look."}]),
            AIMessage("I do.", tool_calls=[{"name": "look", "args": {"at": "x"}, "id": "c"}]),
            ToolMessage("a door", tool_call_id="c"),
        ]
    )
    ours = [
        m.system("Be brief."),
        m.user("Look."),
        m.assistant("I do.", (ToolCall("c", "look", {"at": "x"}),)),
        m.tool(m.ToolResult("c", "look", "a door")),
    ]
    assert list(only_request(model).prompt_ids) == model.encode(model.render(ours))


def test_the_message_tells_origin_and_counts():
    chat, model = chat_of("Hello.")
    message = chat.invoke("Hi")
    assert (message.content, message.tool_calls) == ("Hello.", [])
    assert message.response_metadata == {
        "origin": "recorded",
        "model_name": model.name,
        "finish_reason": "stop",
    }
    usage = message.usage_metadata
    assert usage["input_tokens"] == model.count([m.user("Hi")])
    assert usage["output_tokens"] == len(model.encode("Hello."))
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_token_details"] == {"cache_read": 0}
    again = chat.invoke("Hi").usage_metadata
    assert again["input_token_details"] == {"cache_read": usage["input_tokens"]}


def test_settings_of_the_model_and_of_a_call():
    chat, model = chat_of("a b c d", max_new_tokens=2, temperature=0.5, seed=1, trial=4)
    assert chat.invoke("Hi").content == "a b"
    chat.invoke("Hi", max_new_tokens=9, temperature=0.0, seed=3, trial=0)
    first, second = model.source.requests
    assert (first.max_new_tokens, first.temperature, first.seed, first.trial) == (2, 0.5, 1, 4)
    assert (second.max_new_tokens, second.temperature, second.seed, second.trial) == (9, 0, 3, 0)


def test_stop_ends_the_reply_in_every_way_of_giving_it():
    for chat, settings_ in [
        (chat_of("one two three")[0], {"stop": [" two"]}),
        (chat_of("one two three", stop=[" two"])[0], {}),
        (chat_of("one two three")[0].bind(stop=[" two"]), {}),
        (chat_of("one two three")[0], {"stop": " two"}),
    ]:
        message = chat.invoke("Count.", **settings_)
        assert message.content == "one"
        assert message.response_metadata["finish_reason"] == "stop_string"
        assert "".join(c.content for c in chat.stream("Count.", **settings_)) == "one"


def test_an_unknown_setting_is_named():
    chat, model = chat_of("x")
    with pytest.raises(CourseError, match="no setting 'top_p'"):
        chat.invoke("Hi", top_p=0.5)
    with pytest.raises(CourseError, match="no setting 'max_tokens'"):
        chat_of("x", max_tokens=5)
    with pytest.raises(CourseError, match="no setting 'grammar'"):  # that is for one call
        chat_of("x", grammar={"type": "object"})
    assert not model.source.requests


def test_a_picture_is_refused():
    with pytest.raises(CourseError, match="block of type image"):
        chat_of("x")[0].invoke([HumanMessage([{"type": "image", "url": "x"}])])


# --- tools ----------------------------------------------------------------------------------


def langchain_tool():
    from langchain_core.tools import tool as decorated

    return decorated(parse_docstring=True)(look)


@pytest.mark.parametrize(
    "given_tool", [langchain_tool(), tool(look), look, tool(look).schema()], ids=lambda t: type(t)
)
def test_any_kind_of_tool_is_offered_and_its_calls_are_read(given_tool):
    chat, model = chat_of(CALL)
    message = chat.bind_tools([given_tool]).invoke("Look.")
    prompt = model.decode(only_request(model).prompt_ids)
    assert '"name": "look"' in prompt
    assert "What to look at." in prompt
    assert message.tool_calls == [
        {"name": "look", "args": {"at": "door"}, "id": "call_1", "type": "tool_call"}
    ]
    assert message.content == ""


def test_calls_are_read_only_if_tools_are_offered():
    chat, _ = chat_of(CALL)
    message = chat.invoke("Look.")
    assert (message.content, message.tool_calls) == (CALL, [])


def test_a_broken_call_is_an_invalid_tool_call():
    broken = '{"name": "look", "arguments": {"at": '
    bound = chat_of(broken)[0].bind_tools([look])
    whole, summed = bound.invoke("Look."), sum_of(bound.stream("Look."))
    (invalid,) = whole.invalid_tool_calls
    assert (invalid["args"], whole.content) == (broken, broken)
    assert invalid["error"].startswith("truncated")
    assert whole.response_metadata["parse_errors"] == [invalid["error"]]
    assert essence(summed) == essence(whole)
    assert summed.tool_calls == []


def test_ids_of_calls_never_repeat_in_a_conversation():
    chat, _ = chat_of(TWO)
    bound = chat.bind_tools([look])
    history = [HumanMessage("Look.")]
    for _ in range(2):
        message = bound.invoke(history)
        results = [ToolMessage("x", tool_call_id=call["id"]) for call in message.tool_calls]
        history += [message, *results]
    ids = [call["id"] for x in history if isinstance(x, AIMessage) for call in x.tool_calls]
    assert ids == ["call_1", "call_2", "call_3", "call_4"]
    assert history[1].content == "I look."


def test_tool_choice_forces_by_grammar():
    def other(x: int) -> str:
        "Something else."

    def request_of(choice):
        chat, model = chat_of(CALL)
        chat.bind_tools([look, other], tool_choice=choice).invoke("Look.")
        request = only_request(model)
        return request.grammar, "other" in model.decode(request.prompt_ids)

    plain = request_of(None)
    assert plain == (None, True) == request_of("auto")
    assert request_of("none") == (None, False)
    grammar, offered = request_of("look")
    assert offered and '"const":"look"' in grammar and "other" not in grammar
    assert request_of({"type": "function", "function": {"name": "look"}})[0] == grammar
    for choice in ("any", "required", True):
        assert re.findall('"const":"(\\w+)"', request_of(choice)[0]) == ["look", "other"]
    with pytest.raises(CourseError, match="'find' is no tool that is bound: look, other"):
        request_of("find")


def test_the_forcing_grammar_is_a_schema_that_only_calls_fit():
    import json

    from jsonschema import Draft202012Validator

    chat, model = chat_of(CALL)
    chat.bind_tools([look], tool_choice="any").invoke("Look.")
    schema = json.loads(only_request(model).grammar)
    Draft202012Validator.check_schema(schema)
    fits = Draft202012Validator(schema).is_valid
    assert fits({"name": "look", "arguments": {"at": "x"}})
    assert not fits({"name": "look", "arguments": {}})
    assert not fits({"name": "look", "arguments": {"at": "x", "b": 1}})
    assert not fits({"name": "find", "arguments": {"at": "x"}})


def test_structured_output():
    chat, model = chat_of('{"name": "Answer", "arguments": {"name": "Bob"}}')
    assert chat.with_structured_output(Answer).invoke("Who?") == Answer(name="Bob")
    assert '"const":"Answer"' in only_request(model).grammar


# --- streaming and async --------------------------------------------------------------------


def sum_of(chunks):
    total = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return total


def essence(message):
    return (
        message.content,
        message.tool_calls,
        message.response_metadata,
        message.usage_metadata["output_tokens"],
    )


@pytest.mark.parametrize("reply", ["Hello there, Bob.", "", CALL, TWO, "🙂👩‍👩‍👧 ветер"])
def test_chunks_add_up_to_the_message(reply):
    bound = chat_of(reply)[0].bind_tools([look])
    chunks = list(bound.stream("Hi"))
    assert all(isinstance(chunk, AIMessageChunk) for chunk in chunks)
    assert essence(sum_of(chunks)) == essence(bound.invoke("Hi"))


def test_the_stream_comes_token_by_token():
    chunks = [chunk.content for chunk in chat_of("one two three")[0].stream("Count.")]
    assert chunks[:3] == ["one", " two", " three"]


@given(text=st.text(max_size=30))
@settings(max_examples=150, deadline=None)
def test_no_character_is_split(text):
    chat, model = chat_of(text)
    whole = chat.invoke("Hi").content
    pieces = [chunk.content for chunk in chat.stream("Hi")]
    assert "".join(pieces) == whole
    if "\ufffd" not in whole:
        assert not any("\ufffd" in piece for piece in pieces)


def test_async_gives_the_same():
    chat, _ = chat_of("Hello there, Bob.")

    async def both():
        message = await chat.ainvoke("Hi")
        pieces = [chunk.content async for chunk in chat.astream("Hi")]
        several = await chat.abatch(["Hi", "Ho"])
        return message.content, "".join(pieces), [x.content for x in several]

    text = "Hello there, Bob."
    assert asyncio.run(both()) == (text, text, [text, text])


# --- counting -------------------------------------------------------------------------------

HISTORY = [SystemMessage("Be brief."), HumanMessage("Hi! I'm Bob"), AIMessage("Hello, Bob!")]


def test_it_counts_with_its_own_tokenizer():
    chat, model = chat_of("x")
    assert chat.get_num_tokens("Привет") == len(model.encode("Привет"))
    counter = TokenCounter(model.tokenizer)
    assert chat.get_num_tokens_from_messages(HISTORY) == counter(HISTORY)
    with_tools = chat.get_num_tokens_from_messages(HISTORY, tools=[tool(look)])
    schemas = [tool(look).schema()]
    ours = [m.system("Be brief."), m.user("Hi! I'm Bob"), m.assistant("Hello, Bob!")]
    marker = model.count(ours) - counter(HISTORY)
    assert with_tools == model.count(ours, schemas) - marker


def test_it_is_the_right_counter_for_trim_messages():
    chat, _ = chat_of("x")
    history = [*HISTORY, HumanMessage("Who am I?")]
    budget = chat.get_num_tokens_from_messages([history[0], history[-1]])
    common = {"token_counter": chat, "include_system": True, "start_on": "human"}
    kept = trim_messages(history, max_tokens=budget, **common)
    assert kept == [history[0], history[-1]]
    assert trim_messages(history, max_tokens=budget - 1, **common) == history[:1]


# --- LangGraph ------------------------------------------------------------------------------


def graph_of(chat, checkpointer=None):
    from langgraph.graph import START, MessagesState, StateGraph

    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [chat.invoke(state["messages"])]})
    graph.add_edge(START, "model")
    return graph.compile(checkpointer=checkpointer)


def say(graph, thread, text):
    config = {"configurable": {"thread_id": thread}}
    return graph.invoke({"messages": [HumanMessage(text)]}, config)["messages"][-1].content


def test_threads_do_not_mix():
    from langgraph.checkpoint.memory import InMemorySaver

    graph = graph_of(chat_of(name_recaller)[0], InMemorySaver())
    say(graph, "a", "Hi! I'm Bob")
    say(graph, "b", "Hi!")
    assert say(graph, "a", "What's my name?") == "Your name is Bob."
    assert say(graph, "b", "What's my name?") == "I do not know your name."


def test_a_graph_streams_tokens():
    graph = graph_of(chat_of("one two three")[0])
    stream = graph.stream({"messages": [HumanMessage("Count.")]}, stream_mode="messages")
    pieces = [piece.content for piece, _ in stream]
    assert pieces[:3] == ["one", " two", " three"]
    assert "".join(pieces) == "one two three"


def test_create_agent_runs_tools_until_the_answer():
    from langchain.agents import create_agent

    def answer(prompt):
        return "I see a door." if "<tool_response>\na door" in prompt else CALL

    chat, model = chat_of(answer)
    agent = create_agent(chat, [look], system_prompt="Use tools.")
    messages = agent.invoke({"messages": [HumanMessage("Look at the door.")]})["messages"]
    assert [x.type for x in messages] == ["human", "ai", "tool", "ai"]
    assert messages[-1].content == "I see a door."
    assert "Use tools." in model.decode(model.source.requests[0].prompt_ids)


PATH_TO_COURSE = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
IN_A_NEW_PROCESS = """
import sys
from fake_source import fake_model, name_recaller
from langgraph.checkpoint.sqlite import SqliteSaver
from test_langchain_model import graph_of, say
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    print(say(graph_of(fake_model(name_recaller).langchain(), saver), "bob", sys.argv[2]))
"""


def test_a_conversation_goes_on_in_a_new_process(tmp_path):
    def run(text):
        command = [sys.executable, "-c", IN_A_NEW_PROCESS, str(tmp_path / "memory.db"), text]
        here = Path(__file__).parent
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=here, env=PATH_TO_COURSE, check=True
        )
        return done.stdout.strip()

    run("Hi! I'm Bob")
    assert run("What's my name?") == "Your name is Bob."


@pytest.mark.skipif(
    "COURSE_TEST_POSTGRES" not in os.environ,
    reason="COURSE_TEST_POSTGRES names no server (postgresql://user@host/database)",
)
def test_a_conversation_goes_on_from_postgres():
    postgres = pytest.importorskip(
        "langgraph.checkpoint.postgres",
        reason="needs langgraph-checkpoint-postgres and psycopg[binary]",
        exc_type=ImportError,  # psycopg without its library is no missing module
    )
    saver = postgres.PostgresSaver
    address = os.environ["COURSE_TEST_POSTGRES"]
    thread = f"bob-{os.getpid()}"
    for text, answer in [
        ("Hi! I'm Bob", "Your name is Bob."),
        ("What's my name?", "Your name is Bob."),
    ]:
        with saver.from_conn_string(address) as connection:
            connection.setup()
            graph = graph_of(chat_of(name_recaller)[0], connection)
            assert say(graph, thread, text) == answer


# --- other models behind it -----------------------------------------------------------------


def test_a_scripted_model_speaks_langchain_too():
    chat = CourseChat(model=scripted(["Hello.", CALL]))
    assert chat.invoke("Hi").response_metadata["origin"] == "scripted"
    assert chat.bind_tools([look]).invoke("Look.").tool_calls[0]["args"] == {"at": "door"}
    for counting in (
        lambda: chat.get_num_tokens("Hi"),
        lambda: chat.get_num_tokens_from_messages([HumanMessage("Hi")]),
    ):
        with pytest.raises(CourseError, match="'scripted' has no tokenizer"):
            counting()


@pytest.fixture
def server(monkeypatch):
    for name in ("COURSE_SERVER_MODEL", "COURSE_API_KEY", "COURSE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with FaultServer() as server:
        yield server


def test_on_a_server_it_is_the_librarys_own(server):
    from langchain_openai import ChatOpenAI

    chat = load(mode=server.address).langchain(max_new_tokens=9, seed=2, trial=1, stop=["\n"])
    assert isinstance(chat, ChatOpenAI)
    message = chat.bind_tools([look]).invoke("Weather?")
    assert message.tool_calls[0]["args"] == {"city": "Paris"}
    (sent,) = server.requests
    assert (sent["model"], sent["max_tokens"], sent["seed"]) == ("tiny", 9, 3)
    assert (sent["temperature"], sent["stop"]) == (0.0, ["\n"])
    assert sent["tools"][0]["function"]["name"] == "look"
    assert "max_completion_tokens" not in sent


def test_a_pipeline_needs_tokens(server):
    with pytest.raises(NeedsTokens, match="pipeline"):
        load(mode=server.address).pipeline()
