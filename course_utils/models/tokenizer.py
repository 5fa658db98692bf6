"""The tokenizer and chat template that belong to a model, shipped with the course.

They are here without the weights, so that token counts are exact on every machine. The `tokenizers`
library and Jinja do the work, as they do inside transformers, whose import would cost each notebook
three seconds; a test holds both to the same ids and the same prompt text.
"""

from __future__ import annotations

import json
from functools import cached_property, lru_cache
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Message
from course_utils.models.catalogue import CATALOGUE, catalogue

TOKENIZERS = CATALOGUE.parent / "tokenizers"


class CourseTokenizer:
    """Text to token ids and back, and conversations to prompt text.

    >>> CourseTokenizer("qwen2.5-coder").encode("Hello")
    [9707]
    """

    def __init__(self, folder: str) -> None:
        import tokenizers

        self.path = TOKENIZERS / folder
        files = {name: self.path / name for name in ("tokenizer.json", "tokenizer_config.json")}
        files["template"] = self.path / "chat_template.jinja"
        for file in files.values():
            if not file.is_file():
                raise CourseError(
                    f"The tokenizer {folder!r} is not complete: {file.name} is missing in "
                    f"data/tokenizers/{folder}. {_remedy(folder)}"
                )
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(files["tokenizer.json"]))
            config = json.loads(files["tokenizer_config.json"].read_text(encoding="utf-8"))
            self.end_token: str = config["eos_token"]
            self.template_text = files["template"].read_text(encoding="utf-8")
            self._template = compile_template(self.template_text)
        except Exception as error:  # the Rust library raises plain Exception for a damaged file
            raise CourseError(
                f"The tokenizer {folder!r} in data/tokenizers/{folder} is damaged "
                f"({type(error).__name__}: {error}). Restore it with "
                f"`git checkout -- data/tokenizers`."
            ) from error

    @property
    def end_id(self) -> int:
        """The token with which a model ends its reply (`<|im_end|>`)."""
        return self._tokenizer.token_to_id(self.end_token)

    @cached_property
    def hf(self) -> Any:
        """The same tokenizer as a transformers object, for libraries that want one."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(self.path), local_files_only=True)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; names of control tokens in it become control tokens."""
        try:
            return self._tokenizer.encode(text, add_special_tokens=False).ids
        except TypeError as error:  # not a str, or one with half of a surrogate pair in it
            raise CourseError(
                f"Only valid text has tokens, not {text!r:.60}: a character in it is half of a "
                "pair (as in a cut emoji), or it is no text at all."
            ) from error

    def decode(self, ids: list[int]) -> str:
        """Text of token ids, control tokens shown by name."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def render(
        self,
        messages: list[Message],
        tools: list[dict[str, Any]] | None = None,
        generation_prompt: bool = True,
    ) -> str:
        """The prompt text that the chat template makes of a conversation and a tool list."""
        return self._template.render(
            messages=[_template_dict(message) for message in messages],
            tools=tools or None,
            add_generation_prompt=generation_prompt,
        )


def _remedy(folder: str) -> str:
    untried = [m.name for m in catalogue().values() if m.tokenizer == folder and not m.tried]
    if untried:
        return (
            f"The course does not ship it, and has never run {untried[0]}: put tokenizer.json, "
            "tokenizer_config.json and chat_template.jinja of that model there."
        )
    return "The course ships that folder: restore it with `git checkout -- data/tokenizers`."


@lru_cache
def tokenizer(folder: str) -> CourseTokenizer:
    """The tokenizer in data/tokenizers/<folder>, loaded once."""
    return CourseTokenizer(folder)


def compile_template(text: str) -> Any:
    """A chat template, compiled with the settings that transformers uses.

    Call `.render(messages=…, tools=…, add_generation_prompt=…)` on the result.
    """
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    # Jinja's own tojson escapes < and > for web pages; a prompt wants them as they are.
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(text)


def _template_dict(message: Message) -> dict[str, Any]:
    # Templates want arguments as objects; the wire format has them as a string of JSON.
    entry: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        entry["tool_calls"] = [
            {"function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return entry
