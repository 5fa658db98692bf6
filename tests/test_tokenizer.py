"""The shipped tokenizer and template against transformers, which is the reference for both."""

import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.errors import CourseError
from course_utils.messages import Message, ToolCall
from course_utils.models import tokenizer as module
from course_utils.models.catalogue import catalogue
from course_utils.models.tokenizer import CourseTokenizer, _template_dict, tokenizer

TOK = tokenizer("qwen2.5-coder")
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Wetter <heute> & 'morgen' Погода",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
texts = st.text(max_size=40)
arguments = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), texts, st.none()))
messages = st.one_of(
    st.builds(Message, st.sampled_from(["system", "user", "assistant", "tool"]), texts),
    st.builds(
        lambda text, args: Message("assistant", text, (ToolCall("call_1", "get_weather", args),)),
        texts,
        arguments,
    ),
)


@given(texts)
def test_ids_equal_those_of_transformers(text):
    assert TOK.encode(text) == TOK.hf.encode(text, add_special_tokens=False)


@given(st.lists(st.integers(0, 151_664), max_size=20))
def test_decoding_equals_that_of_transformers(ids):
    assert TOK.decode(ids) == TOK.hf.decode(
        ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
    )


@settings(deadline=None)
@given(st.lists(messages, min_size=1, max_size=6), st.booleans(), st.booleans())
def test_prompts_equal_those_of_transformers(conversation, with_tools, marker):
    tools = [TOOL] if with_tools else None
    expected = TOK.hf.apply_chat_template(
        [_template_dict(m) for m in conversation],
        tools=tools,
        tokenize=False,
        add_generation_prompt=marker,
    )
    assert TOK.render(conversation, tools, generation_prompt=marker) == expected


def test_the_shipped_template_shows_single_braces():
    prompt = TOK.render([Message("user", "Hi")], [TOOL])
    assert '{"name": <function-name>, "arguments": <args-json-object>}' in prompt
    assert "{{" not in prompt


def test_control_tokens_in_text_become_control_tokens():
    assert TOK.encode("<|im_end|>") == [TOK.end_id]


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_a_missing_file_is_named(tmp_path, monkeypatch, name):
    shutil.copytree(TOK.path, tmp_path / "mine")
    (tmp_path / "mine" / name).unlink()
    monkeypatch.setattr(module, "TOKENIZERS", tmp_path)
    with pytest.raises(CourseError, match=f"{name} is missing.*git checkout"):
        CourseTokenizer("mine")


def test_a_tokenizer_that_is_not_shipped_is_not_to_be_restored():
    untried = [model for model in catalogue().values() if not model.tried]
    assert untried
    for model in untried:
        with pytest.raises(CourseError, match=f"does not ship it.*{model.name}") as caught:
            CourseTokenizer(model.tokenizer)
        assert "git checkout" not in str(caught.value)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
@pytest.mark.parametrize("content", [b"{% if", b"\xff\xfe"])
def test_a_damaged_file_is_one_sentence(tmp_path, monkeypatch, name, content):
    shutil.copytree(TOK.path, tmp_path / "mine")
    (tmp_path / "mine" / name).write_bytes(content)
    monkeypatch.setattr(module, "TOKENIZERS", tmp_path)
    with pytest.raises(CourseError, match="data/tokenizers/mine is damaged.*git checkout"):
        CourseTokenizer("mine")
