"""CourseLM behaves as a model of transformers does, or says what it cannot do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_source import FakeSource, fake_model, name_recaller

from course_utils import messages as m
from course_utils.errors import CourseError
from course_utils.models.causal_lm import CourseLM, UnsupportedGeneration
from course_utils.models.chat import CourseModel
from course_utils.models.seam import Generation

TEXT = "Paris is the capital of France, and Lyon is not."


@pytest.fixture
def paris():
    return fake_model(TEXT)


def requests(model):
    return model.source.requests


# --- against a real model -------------------------------------------------------------------


class TorchSource(FakeSource):
    """Generates with a tiny torch model, one prompt at a time, as an engine would."""

    def __init__(self, torch_model):
        super().__init__(lambda prompt: "")
        self.torch_model = torch_model

    def generate(self, request):
        import torch

        self.requests.append(request)
        ids = list(request.prompt_ids)
        new, finish = [], "length"
        while len(new) < request.max_new_tokens:
            with torch.no_grad():
                token = int(self.torch_model(torch.tensor([ids + new])).logits[0, -1].argmax())
            if token == self.tok.end_id:
                finish = "stop"
                break
            new.append(token)
            if any(mark in self.tok.decode(new) for mark in request.stop):
                finish = "stop_string"
                break
        return Generation(tuple(new), self.tok.decode(new), finish)


@pytest.fixture(scope="module")
def twins():
    """A tiny real model, and a CourseLM whose seam it stands behind."""
    import torch
    from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=151936,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    real = Qwen2ForCausalLM(config).eval()
    model = CourseModel(TorchSource(real))
    end = model.tokenizer.end_id
    # Only a few tokens are ever likely, so that ends and stop strings really happen.
    likely = [*model.encode("a b c d e . , ; !"), end]
    with torch.no_grad():
        weights = torch.zeros_like(real.lm_head.weight)
        weights[likely] = torch.randn(len(likely), 16)
        real.lm_head.weight.copy_(weights)
    real.generation_config = GenerationConfig(
        do_sample=False, max_new_tokens=12, eos_token_id=end, pad_token_id=151643
    )
    ours = CourseLM(model)
    ours.generation_config = real.generation_config
    return real, ours, model.tokenizer.hf


PROMPTS = ["One", "Two and a half", "Three, four", "Hi", "x y z", "Привет", "?", "So it goes on"]


def encoded(tokenizer, prompts, side="left"):
    tokenizer.padding_side = side
    return dict(tokenizer(prompts, return_tensors="pt", padding=True))


def same(twins, inputs, **settings):
    real, ours, _ = twins
    expected = real.generate(**inputs, **settings)
    assert ours.generate(**inputs, **settings).tolist() == expected.tolist()
    return expected


def test_one_prompt_as_the_real_model(twins):
    for prompt in PROMPTS:
        same(twins, encoded(twins[2], [prompt]))


def test_a_padded_batch_as_the_real_model(twins):
    result = same(twins, encoded(twins[2], PROMPTS))
    # Otherwise the comparison would say little about ends and filling up.
    assert len(set(result[:, -1].tolist())) > 1
    assert 151643 in result[:, -1].tolist()


@pytest.mark.parametrize(
    "settings",
    [
        {"max_new_tokens": 3},
        {"max_new_tokens": 1},
        {"max_length": 9, "max_new_tokens": None},
        {"num_beams": 1},
    ],
)
def test_limits_as_the_real_model(twins, settings):
    same(twins, encoded(twins[2], PROMPTS), **settings)


@pytest.mark.parametrize("stop", [".", [" b", "!"]])
def test_stop_strings_as_the_real_model(twins, stop):
    same(twins, encoded(twins[2], PROMPTS), stop_strings=stop, tokenizer=twins[2])


def test_stopping_criteria_as_the_real_model(twins):
    from transformers import StoppingCriteria, StoppingCriteriaList

    inputs = encoded(twins[2], PROMPTS)
    plain = twins[0].generate(**inputs)
    wanted = plain[0, inputs["input_ids"].shape[1] + 2].item()

    class Seen(StoppingCriteria):
        def __init__(self):
            self.seen = []

        def __call__(self, input_ids, scores, **kwargs):
            self.seen.append(input_ids.tolist())
            return input_ids[:, -1] == wanted

    real, ours = Seen(), Seen()
    expected = twins[0].generate(**inputs, stopping_criteria=StoppingCriteriaList([real]))
    got = twins[1].generate(**inputs, stopping_criteria=[ours])
    assert got.tolist() == expected.tolist() != plain.tolist()
    assert ours.seen == real.seen


def test_a_streamer_is_fed_as_by_the_real_model(twins):
    class Streamer:
        def __init__(self):
            self.fed = []

        def put(self, value):
            self.fed.append(value.tolist())

        def end(self):
            self.fed.append("end")

    for prompt in PROMPTS:
        real, ours = Streamer(), Streamer()
        inputs = encoded(twins[2], [prompt])
        twins[0].generate(**inputs, streamer=real)
        twins[1].generate(**inputs, streamer=ours)
        assert ours.fed == real.fed


def test_the_pipeline_on_both_gives_the_same(twins):
    from transformers import pipeline

    real, ours, tokenizer = twins
    pipes = [pipeline("text-generation", model=x, tokenizer=tokenizer) for x in (real, ours)]
    for settings in [{}, {"return_full_text": False}, {"batch_size": 3}, {"stop_sequence": "."}]:
        a, b = (pipe(list(PROMPTS), **settings) for pipe in pipes)
        assert a == b


# --- what reaches the seam ------------------------------------------------------------------


def test_a_bare_pipeline_is_greedy_and_sends_the_prompt_as_it_is(paris):
    pipe = paris.pipeline()
    assert pipe("Where is") == [{"generated_text": "Where is" + TEXT}]
    (request,) = requests(paris)
    assert list(request.prompt_ids) == paris.encode("Where is")
    assert (request.temperature, request.seed, request.max_new_tokens) == (0.0, 0, 256)
    assert pipe("Where is", return_full_text=False) == [{"generated_text": TEXT}]


def test_a_chat_gets_the_courses_own_prompt(paris):
    conversation = [m.system("Be brief."), m.user("Hi! I'm Bob")]
    paris.pipeline(max_new_tokens=3)([message.to_dict() for message in conversation])
    (request,) = requests(paris)
    assert list(request.prompt_ids) == paris.encode(paris.render(conversation))
    assert request.max_new_tokens == 3


@pytest.mark.parametrize("side", ["left", "right"])
def test_each_row_of_a_batch_is_asked_without_its_padding(paris, side):
    lm = CourseLM(paris)
    lm.generate(**encoded(paris.tokenizer.hf, PROMPTS, side))
    assert [list(request.prompt_ids) for request in requests(paris)] == [
        paris.encode(prompt) for prompt in PROMPTS
    ]


def test_last_replies_tell_origin_and_counts(paris):
    from transformers import StoppingCriteria

    class AfterTwo(StoppingCriteria):
        def __call__(self, input_ids, scores, **kwargs):
            return input_ids.shape[1] >= 4

    pipe = paris.pipeline()
    pipe("Where is")
    (reply,) = pipe.model.last_replies
    assert (reply.text, reply.origin, reply.finish_reason) == (TEXT, "recorded", "stop")
    pipe("Where is", stopping_criteria=[AfterTwo()])
    (reply,) = pipe.model.last_replies
    assert (reply.prompt_tokens, reply.output_tokens) == (2, 2)
    assert (reply.text, reply.finish_reason) == (paris.decode(reply.ids), "stopping_criteria")


def test_sampling_goes_through_the_seed(paris):
    pipe = paris.pipeline()
    pipe("Hi", do_sample=True, temperature=0.5, seed=3, trial=2)
    (request,) = requests(paris)
    assert (request.temperature, request.seed, request.trial) == (0.5, 3, 2)
    with pytest.raises(UnsupportedGeneration, match="needs a seed"):
        pipe("Hi", do_sample=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_beams": 4}, "cannot honour num_beams=4"),
        ({"repetition_penalty": 1.2}, "repetition_penalty=1.2"),
        ({"do_sample": True, "seed": 1, "top_p": 0.9}, "top_p=0.9"),
        ({"temperature": 0.5}, "temperature has no effect without do_sample"),
        ({"seed": 1}, "seed has no effect"),
        ({"num_return_sequences": 2}, "num_return_sequences=2"),
        ({"logits_processor": [print]}, "logits_processor="),
        ({"assistant_model": "x"}, "assistant_model='x'"),
        ({"return_dict_in_generate": True}, "return_dict_in_generate"),
        ({"min_new_tokens": 5}, "min_new_tokens=5"),
        ({"eos_token_id": 13}, "not with eos_token_id=13"),
        ({"max_time": 1.0}, "max_time"),
        ({"max_length": 9}, "would overrule max_length"),
        ({"max_new_tokens": None}, "how long the reply may be"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1, not 0"),
        ({"max_length": 1, "max_new_tokens": None}, "max_new_tokens must be at least 1"),
    ],
)
def test_what_cannot_be_honoured_is_named(paris, settings, words):
    inputs = paris.tokenizer.hf("Hi there", return_tensors="pt")
    with pytest.raises(CourseError, match=words):
        CourseLM(paris).generate(**inputs, **settings)
    assert not [r for r in requests(paris)]


def test_a_configuration_counts_like_settings(paris):
    from transformers import GenerationConfig

    pipe = paris.pipeline()
    pipe("Hi", generation_config=GenerationConfig(max_new_tokens=2))
    assert requests(paris)[-1].max_new_tokens == 2
    with pytest.raises(UnsupportedGeneration, match="num_beams=2"):
        pipe("Hi", generation_config=GenerationConfig(num_beams=2))


def test_no_logits_no_batch_streaming_no_empty_prompt(paris):
    from transformers import TextStreamer

    pipe = paris.pipeline()
    with pytest.raises(UnsupportedGeneration, match="no logits"):
        pipe.model(input_ids=[[1]])
    with pytest.raises(UnsupportedGeneration, match="prompt is empty"):
        pipe("")
    inputs = encoded(paris.tokenizer.hf, ["a", "b c"])
    with pytest.raises(UnsupportedGeneration, match="this batch has 2"):
        pipe.model.generate(**inputs, streamer=TextStreamer(paris.tokenizer.hf))


def test_a_failure_ends_the_stream_too(paris):
    from transformers import TextIteratorStreamer

    streamer = TextIteratorStreamer(paris.tokenizer.hf, timeout=20)
    inputs = paris.tokenizer.hf("Hi", return_tensors="pt")
    with pytest.raises(UnsupportedGeneration):
        CourseLM(paris).generate(**inputs, streamer=streamer, num_beams=2)
    assert list(streamer) == [""]


# --- what LangChain builds on it ------------------------------------------------------------


@pytest.fixture
def hugging_chat():
    from langchain_huggingface import ChatHuggingFace, HuggingFacePipeline

    def make(model, **settings):
        llm = HuggingFacePipeline(pipeline=model.pipeline(**settings))
        return ChatHuggingFace(llm=llm, tokenizer=model.tokenizer.hf)

    return make


def test_pitfall_one_the_reply_contains_its_prompt(hugging_chat):
    model = fake_model(name_recaller)
    prompt = model.render([m.user("Hi! I'm Bob")])
    assert hugging_chat(model).invoke("Hi! I'm Bob").content == prompt + "Your name is Bob."
    fixed = hugging_chat(model, return_full_text=False)
    assert fixed.invoke("Hi! I'm Bob").content == "Your name is Bob."


def test_bound_tools_are_dropped_silently(hugging_chat):
    def look(at: str) -> str:
        "Look at something."

    model = fake_model("Hello.")
    chat = hugging_chat(model)
    chat.invoke("Hi")
    chat.bind_tools([look]).invoke("Hi")
    plain, bound = requests(model)
    assert plain.prompt_ids == bound.prompt_ids


def test_a_history_that_ends_in_a_result_is_refused(hugging_chat):
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    call = {"name": "look", "args": {}, "id": "1"}
    history = [
        HumanMessage("Look."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("a door", tool_call_id="1"),
    ]
    with pytest.raises(ValueError, match="HumanMessage"):
        hugging_chat(fake_model("x")).invoke(history)


def test_the_tokenizer_is_found_by_the_models_name():
    from langchain_huggingface import ChatHuggingFace, HuggingFacePipeline

    model = fake_model("Hello.")
    chat = ChatHuggingFace(llm=HuggingFacePipeline(pipeline=model.pipeline()))
    assert chat.tokenizer.encode("Hi") == model.encode("Hi")


def test_streaming_through_langchain(hugging_chat):
    chat = hugging_chat(fake_model(TEXT))
    pieces = [chunk.content for chunk in chat.stream("Where?")]
    assert "".join(pieces) == TEXT
    assert len(pieces) > 5


def test_streaming_through_langgraph(hugging_chat):
    from langgraph.graph import START, MessagesState, StateGraph

    chat = hugging_chat(fake_model(TEXT), return_full_text=False)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": chat.invoke(state["messages"])})
    graph.add_edge(START, "model")
    stream = graph.compile().stream(
        {"messages": [{"role": "user", "content": "Where?"}]}, stream_mode="messages"
    )
    assert "".join(piece.content for piece, _ in stream) == TEXT


def test_nothing_is_written_to_stderr_and_nothing_is_loaded():
    code = """
from fake_source import fake_model
from langchain_huggingface import ChatHuggingFace, HuggingFacePipeline
model = fake_model("Hello.")
pipe = model.pipeline(max_new_tokens=9)
pipe("Hi"); pipe(["a", "b c"], batch_size=2, max_new_tokens=5); pipe("Hi", stop_sequence="x")
pipe([{"role": "user", "content": "Hi"}], return_full_text=False)
chat = ChatHuggingFace(llm=HuggingFacePipeline(pipeline=pipe), tokenizer=model.tokenizer.hf)
chat.invoke("Hi"); list(chat.stream("Hi"))
print(pipe.model.__class__.__name__, repr(pipe)[:22])
"""
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(here.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=here, env=environment
    )
    assert done.stderr == ""
    assert done.stdout == "Qwen2ForCausalLM TextGenerationPipeline\n"
