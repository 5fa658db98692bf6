"""The live engine: llama.cpp over HTTP on loopback, which takes and returns token ids."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Alternative
from course_utils.models.catalogue import ModelSpec, weights_path
from course_utils.models.seam import Generation, Request, reply_text
from course_utils.models.tokenizer import CourseTokenizer, tokenizer


def threads() -> int:
    """How many threads the engine uses: COURSE_THREADS, or up to four of this machine's."""
    setting = os.environ.get("COURSE_THREADS", "")
    if not setting:
        return min(4, os.cpu_count() or 1)
    if not setting.isdigit() or int(setting) < 1:
        raise CourseError(f"COURSE_THREADS must be a whole number of 1 or more, not {setting!r}.")
    return int(setting)


class Engine:
    """One loaded model in a process of its own.

    `cache=True` lets the server keep the last prompt, so that a prompt which extends it is read
    from where it differs. Recording turns that off: a warm cache flips a near-tie now and then.

    >>> Engine(spec("qwen2.5-coder-0.5b")).generate(request)  # doctest: +SKIP
    """

    def __init__(self, spec: ModelSpec, *, cache: bool = True) -> None:
        import httpx

        self.spec = spec
        self.cache = cache
        self.tok: CourseTokenizer = tokenizer(spec.tokenizer)
        self._process, self.address, self.version, self.key = _start(spec)
        self._http = httpx.Client(
            base_url=self.address,
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=httpx.Timeout(10, read=1800),
            trust_env=False,  # a proxy setting must not catch loopback traffic
        )
        atexit.register(self.close)

    def generate(self, request: Request) -> Generation:
        """Run the model. An interrupt closes the connection, which stops the server at once."""
        import httpx

        try:
            response = self._http.post("/completion", json=self._body(request))
        except httpx.HTTPError as error:
            raise CourseError(
                f"The engine of {self.spec.name} does not answer ({type(error).__name__}). "
                "Restart the kernel to start it again."
            ) from error
        if response.status_code != 200:
            raise CourseError(f"The engine refused the request: {_error_text(response)}")
        return self._generation(request, response.json())

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": list(request.prompt_ids),
            "n_predict": request.max_new_tokens,
            "stop": list(request.stop),
            "temperature": request.temperature,
            "seed": request.seed + request.trial,
            "cache_prompt": self.cache,
            "return_tokens": True,
            "n_probs": request.top_k,
            # Plain sampling from the model's own distribution: no truncation, no penalties.
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "repeat_penalty": 1.0,
        }
        if request.grammar is not None:
            body["json_schema"] = json.loads(request.grammar)
        return body

    def _generation(self, request: Request, answer: dict[str, Any]) -> Generation:
        finish = {"eos": "stop", "word": "stop_string", "limit": "length"}.get(answer["stop_type"])
        if finish is None:
            raise CourseError(f"The engine ended in an unknown way: {answer['stop_type']!r}.")
        ids = answer["tokens"]
        if finish == "stop":
            ids = ids[:-1]
        return Generation(
            ids=tuple(ids),
            text=reply_text(ids, request.stop, self.tok.decode),
            finish_reason=finish,
            alternatives=_alternatives(answer.get("completion_probabilities") or [], self.tok),
            origin="live",
        )

    def close(self) -> None:
        """End the process; a closed engine cannot be used again."""
        self._http.close()
        if self._process.poll() is None:
            self._process.stdin.close()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()


def _start(spec: ModelSpec) -> tuple[subprocess.Popen, str, str, str]:
    path = weights_path(spec)
    key = secrets.token_hex(16)
    # Run as a plain script (-P: its folder is not put on the path), so that it starts quickly.
    command = [sys.executable, "-P", str(Path(__file__).with_name("llama_process.py"))]
    log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
    process = subprocess.Popen(
        [*command, str(path), str(spec.n_ctx), str(threads())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "COURSE_ENGINE_KEY": key},
        start_new_session=True,  # the notebook's interrupt key must not end the server
    )
    for line in process.stdout:
        if line.startswith("ENGINE "):
            _, address, version = line.split()
            return process, address, version, key
    log.seek(0)
    tail = " ".join(log.read().split()[-40:])
    raise CourseError(
        f"The engine could not load {path.name}: {tail or 'it said nothing'}. Check the file with "
        f"`python -m course_utils fetch {spec.name}`, and that enough memory is free."
    )


def _alternatives(rows: list[dict], tok: CourseTokenizer) -> tuple[tuple[Alternative, ...], ...]:
    # Four decimals: finer digits are noise of the arithmetic, not of the model.
    return tuple(
        tuple(
            Alternative(option["id"], tok.decode([option["id"]]), round(option["logprob"], 4))
            for option in row["top_logprobs"]
        )
        for row in rows
    )


def _error_text(response: Any) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code}"


_engines: dict[tuple[str, bool], Engine] = {}


def engine_for(spec: ModelSpec, *, cache: bool = True) -> Engine:
    """The running engine of a model, started at the first call (a few seconds)."""
    if (spec.name, cache) not in _engines:
        _engines[spec.name, cache] = Engine(spec, cache=cache)
    return _engines[spec.name, cache]
