"""Where a reply comes from: the recordings, the live engine, or both in turn."""

from __future__ import annotations

import json
import os
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.models.catalogue import ModelSpec, have_weights
from course_utils.models.engine import engine_for
from course_utils.models.recordings import (
    Recordings,
    generation_of,
    make_record,
    read_file,
)
from course_utils.models.seam import Generation, Request
from course_utils.models.tokenizer import tokenizer

MODES = ("auto", "recorded", "live")


class RecordingMissing(CourseError):
    """No recorded reply answers this request, and nothing else may answer it."""


class PromptTooLong(CourseError):
    """The prompt and the room for the reply do not fit in the model's context window."""


def chosen_mode(mode: str | None) -> str:
    """The mode asked for, or COURSE_MODEL, or auto; raises CourseError for any other word."""
    chosen = mode or os.environ.get("COURSE_MODEL") or "auto"
    if chosen in MODES or chosen.startswith(("http://", "https://")):
        return chosen
    raise CourseError(
        f"The mode must be auto, recorded, live or the http(s) address of a model server, "
        f"not {chosen!r}. It comes from load(mode=…) or the environment variable COURSE_MODEL."
    )


class Source:
    """Answers requests for one model in one mode.

    *recorded* answers from the recordings only. *live* always runs the model. *auto* looks among
    the recordings first and runs the model if the weights are there. While a notebook is being
    recorded (COURSE_RECORD_TO names a file), every reply is generated once, cache off, and kept;
    only a model that was asked for as *recorded* stays so.

    >>> Source(spec("qwen2.5-coder-0.5b"), "recorded").generate(request)  # doctest: +SKIP
    """

    def __init__(self, spec: ModelSpec, mode: str, recordings: Recordings | None = None) -> None:
        self.spec = spec
        self.mode = mode
        self.tok = tokenizer(spec.tokenizer)
        self._recordings = recordings

    @property
    def recordings(self) -> Recordings:
        """The recordings, read at first use."""
        if self._recordings is None:
            self._recordings = _all_recordings()
        return self._recordings

    def generate(self, request: Request) -> Generation:
        """Answer one request.

        Raises PromptTooLong before anything is sent, RecordingMissing where only recordings may
        answer, CourseError where the engine is needed and cannot run.
        """
        room = self.spec.n_ctx - request.max_new_tokens
        if len(request.prompt_ids) > room:
            raise PromptTooLong(
                f"The prompt has {len(request.prompt_ids)} tokens; with {request.max_new_tokens} "
                f"kept for the reply only {room} fit in the window of {self.spec.n_ctx}. "
                "Shorten the conversation or lower max_new_tokens."
            )
        record_to = os.environ.get("COURSE_RECORD_TO")
        if record_to and self.mode != "recorded":
            return self._record(request, Path(record_to))
        if self.mode != "live":
            record = self.recordings.find(request.key(self.spec.sha256), request.top_k)
            if record is not None:
                return generation_of(record, self.tok, request.top_k)
        if self.mode == "recorded":
            prompt = self.tok.decode(list(request.prompt_ids))
            raise RecordingMissing(
                "This prompt has no recorded reply, and the mode is 'recorded'. "
                + self.recordings.explain_miss(request, self.spec.name, prompt)
            )
        return self._live(request, cache=True)

    def _live(self, request: Request, *, cache: bool) -> Generation:
        if not have_weights(self.spec):
            gigabytes = self.spec.bytes / 1e9
            raise RecordingMissing(
                f"Only {self.spec.name} itself can answer this new prompt, and its weights are "
                f"not here yet.\nType `make fetch` in the course folder (or `python -m course_utils"
                f" fetch {self.spec.name}`, {gigabytes:.1f} GB, once), then run the cell again."
            )
        return engine_for(self.spec, cache=cache).generate(request)

    def _record(self, request: Request, path: Path) -> Generation:
        key = request.key(self.spec.sha256)
        done = {r["key"]: r for r in (read_file(path) if path.exists() else [])}
        record = done.get(key)
        if record is not None and len((record.get("alternatives") or [[]])[0]) >= request.top_k:
            return generation_of(record, self.tok, request.top_k)
        record = None
        if os.environ.get("COURSE_RECORD_REUSE") == "1":
            record = self.recordings.find(key, request.top_k)
        if record is None:
            generation = self._live(request, cache=False)
            version = engine_for(self.spec, cache=False).version
            record = make_record(
                request, generation, self.spec, self.tok, f"llama.cpp (xllamacpp {version})"
            )
        kept = {name: value for name, value in record.items() if name != "file"}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(kept, ensure_ascii=False) + "\n")
        return generation_of(kept, self.tok, request.top_k)


_shared: list[Recordings] = []


def _all_recordings() -> Recordings:
    # One copy for all models of a kernel: the files are read once.
    if not _shared:
        _shared.append(Recordings())
    return _shared[0]
