"""The course's models inside smolagents: same prompts as its own class, exact stops and counts."""

import pytest
from fake_source import fake_model
from fault_server import FaultServer
from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, TransformersModel, tool
from smolagents.models import CODEAGENT_RESPONSE_FORMAT, ChatMessage, MessageRole

from course_utils.errors import CourseError
from course_utils.models import load, scripted
from course_utils.models.smolagents_model import CourseSmolModel

CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "door"}}\n</tool_call>'
FINAL = '{"name": "final_answer", "arguments": {"answer": "a door"}}'


@tool
def look(at: str) -> str:
    """Look at something.

    Args:
        at: What to look at.
    """
    return f"a {at}"


def message(role, *texts):
    return ChatMessage(role=role, content=[{"type": "text", "text": text} for text in texts])


CONVERSATION = [
    message(MessageRole.SYSTEM, "Be brief."),
    message(MessageRole.USER, "New task:\nLook."),
    message(MessageRole.ASSISTANT, "Thought: I look."),
    message(MessageRole.TOOL_CALL, "Calling tools:\n[{'id': 'call_1', 'type': 'function'}]"),
    message(MessageRole.TOOL_RESPONSE, "Observation:\na door"),
    message(MessageRole.USER, "Go on."),
]


def only_request(model):
    (request,) = model.source.requests
    return request


def agent(kind, model, **settings):
    return kind([look], model, verbosity_level=0, **settings)


def librarys_prompt(model, messages, tools):
    """What smolagents' own local class hands to its tokenizer, as prompt text (no weights)."""
    prompts = []

    class Tokenizer:
        def apply_chat_template(self, messages, tools=None, add_generation_prompt=False, **_):
            prompts.append(
                model.tokenizer.hf.apply_chat_template(
                    messages,
                    tools=tools,
                    add_generation_prompt=add_generation_prompt,
                    tokenize=False,
                )
            )
            raise InterruptedError

    theirs = TransformersModel.__new__(TransformersModel)
    super(TransformersModel, theirs).__init__(flatten_messages_as_text=True, model_id="x")
    theirs.apply_chat_template_kwargs = {}
    theirs.tokenizer = Tokenizer()
    with pytest.raises(InterruptedError):
        theirs.generate(messages, tools_to_call_from=tools)
    return prompts[0]


@pytest.mark.parametrize("tools", [None, [look]], ids=["no tools", "tools"])
def test_the_prompt_is_the_chat_template_over_smolagents_messages(tools):
    model = fake_model("Fine.")
    model.smolagents().generate(CONVERSATION, tools_to_call_from=tools)
    prompt = model.decode(only_request(model).prompt_ids)
    assert prompt == librarys_prompt(model, CONVERSATION, tools)
    assert "Thought: I look.\nCalling tools:" in prompt
    assert "<|im_start|>user\nObservation:\na door\nGo on.<|im_end|>" in prompt


def test_prompts_of_a_whole_run_are_the_librarys():
    replies = iter(["Thought: look.\n<code>\nprint(look('door'))\n</code> and", "<code>\n1/0\n"])
    model = fake_model(lambda _: next(replies, "Thought.\n<code>\nfinal_answer(3)\n</code>"))
    run = agent(CodeAgent, model.smolagents())
    assert run.run("Look.") == 3
    sent = [step.model_input_messages for step in run.memory.steps[1:] if hasattr(step, "timing")]
    sent = [messages for messages in sent if messages]
    assert len(sent) == len(model.source.requests) == 3
    for messages, request in zip(sent, model.source.requests, strict=True):
        assert model.decode(request.prompt_ids) == librarys_prompt(model, messages, None)


def test_generation_ends_at_the_token_and_counts_agree():
    text = "Thought: look.\n<code>\nx = 1\n</code> and then much more that nobody wants to read"
    model = fake_model(text)
    ours = model.smolagents()
    answer = ours.generate(CONVERSATION, stop_sequences=["Observation:", "</code>"])
    assert answer.content == "Thought: look.\n<code>\nx = 1\n"
    assert answer.raw.finish_reason == "stop_string"
    ids = model.encode(text)
    written = next(n for n in range(len(ids)) if "</code>" in model.decode(ids[:n]))
    assert answer.token_usage.output_tokens == written == answer.raw.output_tokens
    request = only_request(model)
    assert answer.token_usage.input_tokens == len(request.prompt_ids)
    assert request.stop == ("Observation:", "</code>")
    assert ours.replies == [answer.raw]


def test_the_agent_gets_its_closing_tag_back_and_sums_the_engines_counts():
    model = fake_model("Thought.\n<code>\nfinal_answer(2 + 2)\n</code> and more")
    ours = model.smolagents()
    done = agent(CodeAgent, ours, return_full_result=True).run("2+2?")
    assert done.output == 4
    (step,) = [s for s in done.steps if s.get("step_number")]
    assert step["model_output"] == "Thought.\n<code>\nfinal_answer(2 + 2)\n</code>"
    (reply,) = ours.replies
    assert done.token_usage.input_tokens == reply.prompt_tokens
    assert done.token_usage.output_tokens == reply.output_tokens


def test_settings_of_the_model_and_of_a_call():
    model = fake_model("a b c d")
    ours = model.smolagents(max_new_tokens=2, temperature=0.5, seed=1, trial=4, top_k=3)
    assert ours.generate(CONVERSATION).content == "a b"
    ours.generate(CONVERSATION, max_new_tokens=9, temperature=0.0, seed=3, trial=0, top_k=0)
    model.smolagents().generate(CONVERSATION)
    got = [
        (r.max_new_tokens, r.temperature, r.seed, r.trial, r.top_k) for r in model.source.requests
    ]
    assert got == [(2, 0.5, 1, 4, 3), (9, 0.0, 3, 0, 0), (256, 0.0, 0, 0, 0)]


def test_an_unknown_setting_is_named():
    model = fake_model("x")
    with pytest.raises(CourseError, match="no setting 'max_tokens'"):
        model.smolagents(max_tokens=5)
    with pytest.raises(CourseError, match="no setting 'top_p'"):
        model.smolagents().generate(CONVERSATION, top_p=0.5)
    assert not model.source.requests


def test_pictures_are_refused():
    picture = ChatMessage(role=MessageRole.USER, content=[{"type": "image", "image": "x"}])
    with pytest.raises(CourseError, match="block of type image"):
        fake_model("x").smolagents().generate([picture])


def test_no_text_block_is_lost_and_plain_text_is_taken():
    model = fake_model("x")
    parts = [message(MessageRole.USER, "One.", "Two."), {"role": "assistant", "content": "Three."}]
    model.smolagents().generate(parts)
    prompt = model.decode(only_request(model).prompt_ids)
    assert "user\nOne.\nTwo.<|im_end|>" in prompt
    assert "assistant\nThree.<|im_end|>" in prompt


def test_response_format_becomes_a_grammar():
    model = fake_model("{}")
    ours = model.smolagents()
    ours.generate(CONVERSATION, response_format=CODEAGENT_RESPONSE_FORMAT)
    ours.generate(CONVERSATION, response_format={"type": "json_object"})
    ours.generate(CONVERSATION, response_format={"type": "text"})
    first, second, third = (r.grammar for r in model.source.requests)
    assert '"thought"' in first
    assert second == '{"type":"object"}'
    assert third is None
    with pytest.raises(CourseError, match="'regex'"):
        ours.generate(CONVERSATION, response_format={"type": "regex"})


def test_a_code_agent_with_structured_replies_runs():
    model = fake_model('{"thought": "I add.", "code": "final_answer(2 + 2)"}')
    run = agent(CodeAgent, model.smolagents(), use_structured_outputs_internally=True)
    assert run.run("2+2?") == 4
    assert '"code"' in only_request(model).grammar


def test_in_a_notebook_a_wrapped_course_error_shows_only_its_message():
    from IPython.core.interactiveshell import InteractiveShell

    def shown(reply):
        run = agent(CodeAgent, fake_model(reply).smolagents())
        shell, lines = InteractiveShell.instance(), []
        shell._showtraceback = lambda kind, error, text: lines.extend(text)
        try:
            run.run("Look.")
        except Exception:
            shell.showtraceback()
        return "\n".join(lines)

    def missing(_):
        raise CourseError("Type `make fetch`.")

    assert shown(missing) == "CourseError: Type `make fetch`."
    assert "ZeroDivisionError" in shown(lambda _: 1 / 0)


# --- calls ----------------------------------------------------------------------------------


def test_calls_are_read_only_if_tools_are_offered():
    ours = fake_model(CALL).smolagents()
    assert ours.generate(CONVERSATION).tool_calls is None
    (call,) = ours.generate(CONVERSATION, tools_to_call_from=[look]).tool_calls
    assert (call.function.name, call.function.arguments) == ("look", {"at": "door"})


def test_a_tool_calling_agent_calls_and_answers_with_ids_that_never_repeat():
    replies = iter([CALL, f"```json\n{FINAL}\n```"])
    model = fake_model(lambda _: next(replies))
    run = agent(ToolCallingAgent, model.smolagents())
    assert run.run("What is there?") == "a door"
    first, second = (step for step in run.memory.steps if getattr(step, "tool_calls", None))
    assert first.observations == "a door"
    assert [c.id for c in first.tool_calls + second.tool_calls] == ["call_1", "call_2"]
    assert '"name": "look"' in model.decode(model.source.requests[0].prompt_ids)


def test_the_same_run_sends_the_same_prompts():
    def requests():
        replies = iter([CALL, CALL, FINAL])
        model = fake_model(lambda _: next(replies))
        agent(ToolCallingAgent, model.smolagents()).run("What is there?")
        return [request.prompt_ids for request in model.source.requests]

    assert requests() == requests()


def test_a_reply_without_a_call_is_told_to_the_model():
    replies = iter(["I see.", '{"name": "look", "arguments": {"at": ', FINAL])
    run = agent(ToolCallingAgent, fake_model(lambda _: next(replies)).smolagents())
    assert run.run("What is there?") == "a door"
    prose, broken = (step.error.message for step in run.memory.steps if getattr(step, "error", 0))
    assert "it is only text" in prose
    assert "truncated" in broken


def test_scripted_replies_end_at_the_stop_too():
    ours = CourseSmolModel(scripted([f"{CALL}\nObservation: a cat\n{FINAL}"]))
    answer = ours.generate(CONVERSATION, ["Observation:"], tools_to_call_from=[look])
    assert answer.content == f"{CALL}\n"
    assert [call.function.name for call in answer.tool_calls] == ["look"]
    assert answer.raw.origin == "scripted"
    assert [call.name for call in answer.raw.tool_calls] == ["look"]


# --- a server -------------------------------------------------------------------------------


def test_on_a_server_it_is_the_librarys_own():
    with FaultServer() as server:
        model = load(mode=server.address)
        ours = model.smolagents(max_new_tokens=9, seed=2, trial=1)
        assert isinstance(ours, OpenAIModel)
        answer = ours.generate(CONVERSATION[:2], ["Observation:"], tools_to_call_from=[look])
        with pytest.raises(CourseError, match="top_k"):
            model.smolagents(top_k=2)
        with pytest.raises(CourseError, match="no setting 'max_tokens'"):
            model.smolagents(max_tokens=2)
    assert answer.tool_calls[0].function.name == "get_weather"
    assert answer.token_usage.input_tokens == 7
    (sent,) = server.requests
    assert (sent["model"], sent["max_tokens"], sent["seed"]) == ("tiny", 9, 3)
    assert (sent["temperature"], sent["stop"]) == (0.0, ["Observation:"])
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
