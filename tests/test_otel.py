"""OpenTelemetry spans of a run: the official schema reads them, and nothing private is in them."""

import base64
import json
import re

import pytest
from agent_kit import LOOK, MAIL, asks, says, world_tools
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from course_utils.agent import run_agent
from course_utils.code_trace import Call, CodeRun, CodeStep
from course_utils.errors import CourseError
from course_utils.messages import Message
from course_utils.models import scripted
from course_utils.otel import CONVENTIONS, SCHEMA_URL, export, span_rows, traces
from course_utils.world.world import World

SEARCH = Call("web_search", {"query": "Paris"}, "13 °C and <partly> cloudy")
STEPS = (
    CodeStep(
        *(1, "<code>…", "print(web_search('Paris'))", (SEARCH,), "Execution logs: 13"),
        tokens_in=2_000,
        tokens_out=30,
        origin="recorded",
        added=(Message("system", "Be an agent."), Message("user", "Weather?")),
    ),
    CodeStep(2, "?", None, (), "", "Error in code parsing: none", 2_100, 5, origin="recorded"),
    CodeStep(
        *(3, "…", "weather()", (Call("mail", {}, "no", False),), "", "NameError: weather"),
        tokens_in=2_200,
        tokens_out=9,
    ),
    CodeStep(4, "It is 13 °C.", None, tokens_in=900, tokens_out=8, kind="forced", is_final=True),
)
RUN = CodeRun("Weather?", {"web_search": ""}, STEPS, "It is 13 °C.", "max_steps", "coder")
NAMES = [
    "invoke_agent agent",
    "chat coder",
    "execute_tool python_interpreter",
    "execute_tool web_search",
    "chat coder",
    "chat coder",
    "execute_tool python_interpreter",
    "execute_tool mail",
    "chat coder",
]


def official(line):
    """A line as the official protobuf schema reads it; unknown fields and wrong types fail."""
    record = json.loads(line)
    for resource in record["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for field, digits in (("traceId", 32), ("spanId", 16), ("parentSpanId", 16)):
                    if field in span:  # OTLP wants hexadecimal where protobuf's JSON has base64
                        assert re.fullmatch(f"[0-9a-f]{{{digits}}}", span[field])
                        raw = bytes.fromhex(span[field])
                        span[field] = base64.b64encode(raw).decode()
    return json_format.ParseDict(record, TracesData())


def spans_of(data):
    return list(data.resource_spans[0].scope_spans[0].spans)


def values(span):
    kinds = {pair.key: pair.value for pair in span.attributes}
    return {key: getattr(value, value.WhichOneof("value")) for key, value in kinds.items()}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.jsonl"


def test_the_official_schema_reads_every_span(file):
    assert export(RUN, file) == len(NAMES)
    (line,) = file.read_text(encoding="utf-8").splitlines()
    data = official(line)
    spans = spans_of(data)
    assert [span.name for span in spans] == NAMES
    assert data.resource_spans[0].schema_url == SCHEMA_URL and CONVENTIONS in SCHEMA_URL
    assert {span.trace_id for span in spans} == {spans[0].trace_id}
    assert len({span.span_id for span in spans}) == len(spans)
    assert [values(span)["gen_ai.operation.name"] for span in spans] == [
        name.split()[0] for name in NAMES
    ]


def test_calls_lie_in_their_program_and_everything_in_the_agent():
    spans = spans_of(official(json.dumps(traces(RUN).to_dict())))
    by_id = {span.span_id: span for span in spans}
    parents = [by_id[span.parent_span_id].name if span.parent_span_id else "" for span in spans]
    agent, program = "invoke_agent agent", "execute_tool python_interpreter"
    assert parents == ["", agent, agent, program, agent, agent, agent, program, agent]
    for span in spans:
        assert span.start_time_unix_nano < span.end_time_unix_nano
        if span.parent_span_id:
            over = by_id[span.parent_span_id]
            assert over.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= over.end_time_unix_nano
    assert spans[1].kind == Span.SPAN_KIND_CLIENT and spans[2].kind == Span.SPAN_KIND_INTERNAL
    chats = [span.start_time_unix_nano for span in spans if span.name == "chat coder"]
    assert chats == sorted(set(chats))


def test_tokens_model_and_origin_stand_in_the_conventions_names():
    spans = spans_of(official(json.dumps(traces(RUN).to_dict())))
    chat = values(spans[1])
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == (2_000, 30)
    assert (chat["gen_ai.request.model"], chat["course.origin"]) == ("coder", "recorded")
    whole = values(spans[0])
    assert whole["gen_ai.usage.input_tokens"] == 7_200 and whole["gen_ai.agent.name"] == "agent"
    assert values(spans[3])["gen_ai.tool.name"] == "web_search"


def test_what_failed_has_an_error():
    spans = spans_of(official(json.dumps(traces(RUN).to_dict())))
    failed = {
        place: values(span)["error.type"]
        for place, span in enumerate(spans)
        if span.status.code == Status.STATUS_CODE_ERROR
    }
    assert failed == {
        0: "max_steps",
        4: "unreadable_reply",
        6: "code_error",
        7: "tool_error",
    }


def test_content_is_written_only_on_demand():
    plain = json.dumps(traces(RUN).to_dict(), ensure_ascii=False)
    assert "13 °C" not in plain and "Be an agent" not in plain and "Weather?" not in plain
    full = spans_of(official(json.dumps(traces(RUN, content=True).to_dict())))
    chat = values(full[1])
    assert json.loads(chat["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "Be an agent."}
    ]
    assert json.loads(chat["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
    ]
    assert values(full[3])["gen_ai.tool.call.result"] == SEARCH.result
    assert json.loads(values(full[3])["gen_ai.tool.call.arguments"]) == {"query": "Paris"}


def test_the_same_run_gives_the_same_file_and_another_one_other_ids(file, tmp_path):
    export(RUN, file)
    first = file.read_bytes()
    export(RUN, file)
    assert file.read_bytes() == first
    other = CodeRun("Weather in Oslo?", RUN.tools, STEPS, RUN.answer, "max_steps", "coder")
    export(other, file, append=True)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    ids = {span.trace_id for line in lines for span in spans_of(official(line))}
    assert len(ids) == 2


def test_rows_read_the_file_back_indented(file):
    export(RUN, file)
    rows = span_rows(file)
    assert [row["span"].replace("· ", "") for row in rows] == NAMES
    assert rows[3] == {
        "span": "· · execute_tool web_search",
        "input tokens": None,
        "output tokens": None,
        "status": "",
    }
    assert (rows[1]["input tokens"], rows[6]["status"]) == (2_000, "code_error")
    assert span_rows(RUN) == span_rows(str(file)) == rows


def test_a_file_that_is_no_otlp_is_one_clear_error(file):
    file.write_text('{"resourceSpans": 7}\n', encoding="utf-8")
    with pytest.raises(CourseError, match="Line 1 of run.jsonl"):
        span_rows(file)


def test_a_run_of_the_own_loop_is_exported_too():
    replies = [asks(LOOK, MAIL, prompt_tokens=100, output_tokens=20), says("Done.")]
    with World() as world:
        run = run_agent(scripted(replies), world_tools(world), "Tell Ana.")
    spans = spans_of(official(json.dumps(traces(run, content=True).to_dict())))
    assert [span.name.split()[0] for span in spans] == [
        *("invoke_agent", "chat", "execute_tool", "execute_tool", "chat")
    ]
    assert [span.name.split()[1] for span in spans[2:4]] == [LOOK[0], MAIL[0]]
    second = json.loads(values(spans[4])["gen_ai.input.messages"])
    assert [part["type"] for part in second[0]["parts"]] == ["tool_call", "tool_call"]
    assert second[1]["parts"][0]["type"] == "tool_call_response"


@settings(max_examples=50)
@given(st.text(), st.text(), st.integers(0, 2**31))
def test_any_text_and_count_fits_the_schema(text, code, tokens):
    call = Call(text, {text: code}, text, bool(tokens % 2))
    steps = (CodeStep(1, text, code, (call,), text, code, tokens, tokens, origin=text),)
    run = CodeRun(text, {text: code}, steps, text, code, text)
    line = json.dumps(traces(run, content=True).to_dict(), ensure_ascii=False)
    assert "\n" not in line
    assert len(spans_of(official(line))) == 4
