"""`chat` against a real llama.cpp server: the address form of COURSE_MODEL, with native calls."""

import pytest

from course_utils.errors import CourseError
from course_utils.messages import system, tool, user
from course_utils.models import load
from course_utils.models.catalogue import spec
from course_utils.models.engine import engine_for
from course_utils.models.server import NeedsTokens
from course_utils.tools import run_call
from course_utils.tools import tool as make_tool

pytestmark = pytest.mark.live
NAME = "qwen2.5-coder-1.5b"


@make_tool
def get_weather(city: str) -> dict:
    """Get the current weather of a city.

    Args:
        city: The name of the city.
    """
    return {"city": city, "temp_c": 2, "sky": "cloudy"}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("COURSE_THREADS", "1")
    engine = engine_for(spec(NAME))
    monkeypatch.setenv("COURSE_API_KEY", engine.key)
    monkeypatch.setenv("COURSE_MODEL", f"{engine.address}/v1")
    return engine


def test_a_tool_dialogue_over_the_wire(server):
    model = load()
    messages = [system("Call a tool when you need information."), user("Weather in Moscow?")]
    asked = model.chat(messages, [get_weather], max_new_tokens=64)
    assert asked.origin == "live"
    assert asked.prompt_tokens > 0 and asked.output_tokens > 0
    # The file's own template spoils some calls: then the text is there to be read instead.
    assert asked.tool_calls or asked.text
    if asked.tool_calls:
        results = [tool(run_call(call, [get_weather])) for call in asked.tool_calls]
        answer = model.chat([*messages, asked.message(), *results], [get_weather])
        assert answer.text or answer.tool_calls


def test_a_schema_holds_the_reply(server):
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Moscow", "Paris"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    reply = load().chat([user("Capital of France, as JSON.")], grammar=schema, max_new_tokens=32)
    assert "Moscow" in reply.text or "Paris" in reply.text


def test_a_wrong_key_is_refused(server, monkeypatch):
    monkeypatch.setenv("COURSE_API_KEY", "wrong")
    with pytest.raises(CourseError, match="COURSE_API_KEY"):
        load().chat([user("Hi")])


def test_token_ids_are_not_to_be_had(server):
    with pytest.raises(NeedsTokens):
        load().count([user("Hi")])
