"""A second engine for the same weights file: what it would have said at each token of a reply.

llama.cpp writes the replies, transformers and torch judge them. Both compute from the same file,
by different programs in different arithmetic, so their agreement is evidence about the reply and
not about the program. Generating is slow in torch, but judging needs only one pass over prompt
and reply: the scores at each place say which token the model would have put there.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.models.catalogue import ModelSpec, have_weights, home, weights_path
from course_utils.models.engine import threads
from course_utils.models.verified import is_good

ROWS = 64  # places scored at once: 64 x 151,936 scores are 40 MB


def folder_of(spec: ModelSpec) -> Path:
    """Where the judge's copy of a model is, or will be: 16-bit weights, 1 to 3 GB.

    >>> folder_of(spec("qwen2.5-coder-0.5b")).name
    'qwen2.5-coder-0.5b-1d961463'
    """
    return home() / "judge" / f"{spec.name}-{spec.sha256[:8]}"


def convert(spec: ModelSpec) -> Path:
    """The folder of 16-bit weights, made from the model file at the first call (about a minute).

    The file's SHA-256 is checked first. The folder appears under its name only when complete.
    Raises CourseError if the file is not there or is another one.

    >>> convert(spec("qwen2.5-coder-0.5b"))  # doctest: +SKIP
    """
    target = folder_of(spec)
    if target.is_dir():
        return target
    source = weights_path(spec)
    if not have_weights(spec) or not is_good(source, spec):
        raise CourseError(
            f"The judge needs the weights of {spec.name}, and they are not here (or are not the "
            f"right file). Type `python -m course_utils fetch {spec.name}`."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.part-", dir=target.parent))
    try:
        print(f"Converting {spec.name} for the judge: about a minute, once.", flush=True)
        with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that cannot be turned off
            model = _load(source.parent, gguf_file=source.name)
        # What a model read from a GGUF file remembers of it makes save_pretrained refuse.
        model.hf_quantizer = None
        model.is_quantized = False
        del model.config.quantization_config
        model.save_pretrained(scratch)
        scratch.chmod(0o755)  # a temporary folder is private, the cache may be shared
        scratch.rename(target)
    except OSError as error:
        raise CourseError(
            f"The judge's copy of {spec.name} cannot be written to {target.parent} ({error}). "
            f"It needs about {spec.bytes * 3.2 / 1e9:.1f} GB of free space."
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


class Judge:
    """One model in torch, with the states of the last prompt kept.

    Prompts that extend each other (the turns of a conversation, the steps of an agent) share
    their beginning; judged in sorted order, each is read only from where it differs.

    >>> rows = Judge(spec("qwen2.5-coder-0.5b")).scores(prompt_ids, reply_ids)  # doctest: +SKIP
    >>> len(list(rows)) == len(reply_ids) + 1  # doctest: +SKIP
    True
    """

    def __init__(self, spec: ModelSpec) -> None:
        import torch
        from transformers import DynamicCache

        self.spec = spec
        torch.set_num_threads(threads())
        self.model = _load(convert(spec)).eval()
        self._new_cache = lambda: DynamicCache(config=self.model.config)
        self._cache = self._new_cache()
        self._held: list[int] = []
        self.tokens_read = 0

    def scores(self, prompt_ids: Sequence[int], reply_ids: Sequence[int]) -> Iterator[Any]:
        """The scores of every token at each place of the reply, and at the place after it.

        Yields len(reply_ids) + 1 float tensors (logits, one per id of the model's vocabulary).
        They come from one forward pass, in bfloat16 as the weights are.
        """
        import torch

        ids = [*prompt_ids, *reply_ids]
        known = self._keep(ids, at_most=len(prompt_ids) - 1)
        # For the time of the pass the states are in doubt: an interrupt must not leave wrong ones.
        cache, self._cache, self._held = self._cache, self._new_cache(), []
        with torch.no_grad():
            new = torch.tensor([ids[known:]])
            hidden = self.model.model(input_ids=new, cache=cache, use_cache=True)
        self._cache, self._held = cache, ids
        self.tokens_read += len(ids) - known
        places = hidden.last_hidden_state[0, -(len(reply_ids) + 1) :]
        for part in places.split(ROWS):
            with torch.no_grad():
                rows = self.model.lm_head(part).float()
            yield from rows

    def unread(self, prompt_ids: Sequence[int], reply_ids: Sequence[int]) -> int:
        """How many tokens `scores` would have to read for this prompt and reply."""
        ids = [*prompt_ids, *reply_ids]
        return len(ids) - min(_common(self._held, ids), len(prompt_ids) - 1)

    def _keep(self, ids: list[int], at_most: int) -> int:
        # The place before the reply must be read again: its score is the first one asked for.
        known = min(_common(self._held, ids), at_most)
        if known == 0:
            self._cache = self._new_cache()
        elif known < len(self._held):
            self._cache.crop(known - len(self._held))  # a negative count: how many to drop
        self._held = self._held[:known]
        return known


def _load(folder: Path, **options: Any) -> Any:
    # The wish to look things up on a hub must not come up for files that are on the disk.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, local_files_only=True, **options
    )


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    # os.path.commonprefix compares any sequences, at the speed of the shorter one.
    return len(os.path.commonprefix([list(a), list(b)]))
