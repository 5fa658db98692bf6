"""The recorded model under the real `transformers.pipeline`, with no weights loaded.

A pipeline needs very little of a model: a class name that it knows, a configuration, and
`generate`. `CourseLM` has these, and passes every prompt on to the token-level seam. All above it,
the pipeline and what LangChain builds on it, is the library's own code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from course_utils.errors import CourseError
from course_utils.messages import Reply

if TYPE_CHECKING:
    from course_utils.models.chat import CourseModel

HONOURED = {
    "max_new_tokens",
    "max_length",
    "do_sample",
    "temperature",
    "seed",
    "trial",
    "stop_strings",
    "eos_token_id",
    "pad_token_id",
}
# Settings that change nothing at these values; at any other they would change the reply.
NEUTRAL = {
    "num_beams": 1,
    "num_return_sequences": 1,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "return_dict_in_generate": False,
    "output_scores": False,
    "output_logits": False,
}
# These say how to compute or where to look, never what comes out.
IGNORED = {"tokenizer", "use_cache", "bos_token_id", "transformers_version"}


class UnsupportedGeneration(CourseError):
    """A setting of `generate` that recorded replies cannot honour."""


class CourseLM:
    """A causal language model whose `generate` asks a CourseModel.

    Greedy unless `do_sample=True` comes with a `seed`: replies are kept by seed, and torch's global
    random state is no part of a recording. Each row of a batch is a prompt of its own, without its
    padding. A streamer is fed, and stopping criteria are asked, token by token, after the reply is
    complete: they see what they would see with the real model, only not at its pace. Whatever else
    would change the reply raises UnsupportedGeneration. `last_replies` are the Reply objects of the
    last call, one a prompt, with origin and token counts.

    >>> load().pipeline(return_full_text=False)("2 + 2 =", max_new_tokens=4)  # doctest: +SKIP
    """

    def __init__(self, model: CourseModel) -> None:
        from transformers import GenerationConfig, Qwen2Config

        self.model = model
        # Libraries look for a tokenizer under the model's name: this folder holds it.
        self.name_or_path = str(model.tokenizer.path)
        self.config = Qwen2Config(name_or_path=self.name_or_path)
        # Without these a pipeline samples at temperature 0.7.
        self.generation_config = GenerationConfig(
            do_sample=False, max_new_tokens=256, eos_token_id=model.tokenizer.end_id
        )
        self.last_replies: tuple[Reply, ...] = ()
        self._device: Any = "cpu"

    @property
    def device(self) -> Any:
        """Where the pipeline puts its tensors."""
        import torch

        return torch.device(self._device)

    @property
    def dtype(self) -> Any:
        """Shown by pipelines; there are no weights that would have one."""
        import torch

        return torch.float32

    input_modalities = output_modalities = ("text",)

    def to(self, device: Any) -> CourseLM:
        """Follow the pipeline to a device; nothing needs moving."""
        self._device = device
        return self

    def can_generate(self) -> bool:
        """True: pipelines ask before they call generate."""
        return True

    def forward(self, *_: Any, **__: Any) -> Any:
        """There are no logits here: raises UnsupportedGeneration."""
        raise UnsupportedGeneration(
            "CourseLM generates and does nothing else: it has no logits and no gradients. "
            "Ask model.complete(…, top_k=5) for the most likely tokens."
        )

    __call__ = forward

    def generate(
        self,
        input_ids: Any = None,
        attention_mask: Any = None,
        generation_config: Any = None,
        stopping_criteria: Sequence[Any] | None = None,
        streamer: Any = None,
        **settings: Any,
    ) -> Any:
        """Prompt and reply ids, as transformers returns them: a LongTensor, a row a prompt.

        `input_ids` and `attention_mask` have shape (prompts, length). Rows that end early are
        filled up with the padding token. Raises UnsupportedGeneration, and whatever
        `CourseModel.complete` raises.
        """
        try:
            return self._generate(
                input_ids,
                attention_mask,
                self._options(generation_config, settings),
                stopping_criteria,
                streamer,
            )
        except Exception:
            if streamer is not None:
                streamer.end()  # its reader, in another thread, would wait for a minute
            raise

    def _generate(
        self, input_ids: Any, mask: Any, options: dict[str, Any], criteria: Any, streamer: Any
    ) -> Any:
        import torch

        if input_ids is None or input_ids.shape[-1] == 0:
            raise UnsupportedGeneration("The prompt is empty: give the pipeline some text.")
        if streamer is not None and len(input_ids) != 1:
            raise UnsupportedGeneration(
                f"A streamer follows one prompt, and this batch has {len(input_ids)}: "
                "stream them one by one."
            )
        masks = mask.tolist() if mask is not None else [[1] * input_ids.shape[1]] * len(input_ids)
        prompts = [
            [token for token, real in zip(row, kept, strict=True) if real]
            for row, kept in zip(input_ids.tolist(), masks, strict=True)
        ]
        limit = options["max_new_tokens"]
        if limit is None:
            limit = options["max_length"] - input_ids.shape[1]
        replies = [self._ask(prompt, limit, options) for prompt in prompts]
        lengths, columns = self._replay(input_ids, replies, options, criteria, streamer)
        self.last_replies = tuple(
            self._shortened(reply, length) for reply, length in zip(replies, lengths, strict=True)
        )
        new = torch.tensor(columns, dtype=input_ids.dtype, device=input_ids.device)
        return torch.cat([input_ids, new.T], dim=1)

    def _ask(self, prompt: list[int], limit: int, options: dict[str, Any]) -> Reply:
        return self.model.complete(
            prompt,
            max_new_tokens=limit,
            stop=options["stop"],
            temperature=options["temperature"],
            seed=options["seed"],
            trial=options["trial"],
        )

    def _replay(
        self,
        input_ids: Any,
        replies: list[Reply],
        options: dict[str, Any],
        criteria: Any,
        streamer: Any,
    ) -> tuple[list[int], list[list[int]]]:
        """Token by token, as the real loop does it: how long each row got, and the new columns."""
        import torch
        from transformers import StoppingCriteriaList

        rows = [self._with_end(reply) for reply in replies]
        stop_now = StoppingCriteriaList(criteria or [])
        lengths, columns, ids = [0] * len(rows), [], input_ids
        running = [True] * len(rows)
        if streamer is not None:
            streamer.put(input_ids.cpu())
        while any(running):
            column = [
                row[len(columns)] if alive else options["pad"]
                for row, alive in zip(rows, running, strict=True)
            ]
            columns.append(column)
            tokens = torch.tensor(column, dtype=input_ids.dtype, device=input_ids.device)
            ids = torch.cat([ids, tokens[:, None]], dim=1)
            if streamer is not None:
                streamer.put(tokens.cpu())
            done = stop_now(ids, None).tolist()
            for number, row in enumerate(rows):
                lengths[number] += running[number]
                ended = done[number] or len(columns) == len(row)
                running[number] = running[number] and not ended
        if streamer is not None:
            streamer.end()
        return lengths, columns

    def _with_end(self, reply: Reply) -> list[int]:
        end = [self.model.tokenizer.end_id] if reply.finish_reason == "stop" else []
        return [*reply.ids, *end]

    def _shortened(self, reply: Reply, length: int) -> Reply:
        if length >= len(self._with_end(reply)):
            return reply
        ids = reply.ids[:length]
        return replace(
            reply,
            ids=ids,
            text=self.model.decode(ids),
            content=self.model.decode(ids),
            output_tokens=len(ids),
            finish_reason="stopping_criteria",
            alternatives=reply.alternatives[:length],
        )

    def _options(self, config: Any, settings: dict[str, Any]) -> dict[str, Any]:
        """All settings in one place: the model's own, then the configuration, then the call's."""
        called = config.to_diff_dict() if config is not None else {}
        merged = self.generation_config.to_diff_dict() | called | settings
        merged = {k: v for k, v in merged.items() if v is not None and k not in IGNORED}
        for name, value in merged.items():
            if name not in HONOURED and not (name in NEUTRAL and value == NEUTRAL[name]):
                raise UnsupportedGeneration(
                    f"The recorded model cannot honour {name}={_short(value)}. "
                    f"It honours {', '.join(sorted(HONOURED))}; leave {name} out."
                )
        if "max_length" in merged and "max_new_tokens" in merged:
            raise UnsupportedGeneration(
                f"max_new_tokens={merged['max_new_tokens']} would overrule max_length: pass "
                "max_new_tokens=None with it, or only max_new_tokens."
            )
        if not {"max_length", "max_new_tokens"} & merged.keys():
            raise UnsupportedGeneration(
                "Nothing says how long the reply may be: pass max_new_tokens, or max_length for "
                "prompt and reply together."
            )
        end = merged["eos_token_id"]
        if end not in (self.model.tokenizer.end_id, [self.model.tokenizer.end_id]):
            raise UnsupportedGeneration(
                f"This model ends its replies with token {self.model.tokenizer.end_id}, "
                f"not with eos_token_id={end}. Use stop_strings to end elsewhere."
            )
        stop = merged.get("stop_strings", ())
        return {
            "max_new_tokens": merged.get("max_new_tokens"),
            "max_length": merged.get("max_length"),
            "stop": (stop,) if isinstance(stop, str) else tuple(stop),
            "pad": merged.get("pad_token_id", self.model.tokenizer.end_id),
            **_sampling(merged),
        }


# Pipelines know models by the name of their class, and complain at length about an unknown one.
CourseLM.__name__ = "Qwen2ForCausalLM"


def course_pipeline(model: CourseModel, **settings: Any) -> Any:
    """The real text-generation pipeline of transformers, on a CourseModel."""
    from transformers import pipeline

    return pipeline(
        "text-generation", model=CourseLM(model), tokenizer=model.tokenizer.hf, **settings
    )


def _sampling(merged: dict[str, Any]) -> dict[str, Any]:
    if not merged.get("do_sample"):
        extra = sorted({"temperature", "seed", "trial"} & merged.keys())
        if extra:
            raise UnsupportedGeneration(
                f"{extra[0]} has no effect without do_sample=True: add that, or leave it out."
            )
        return {"temperature": 0.0, "seed": 0, "trial": 0}
    if "seed" not in merged:
        raise UnsupportedGeneration(
            "Sampling needs a seed here, because a sampled reply is recorded under its seed: "
            "pass seed=0 with do_sample=True, or do_sample=False for the most likely reply."
        )
    temperature = float(merged.get("temperature", 1.0))
    return {"temperature": temperature, "seed": merged["seed"], "trial": merged.get("trial", 0)}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"<{type(value).__name__}>"
