"""The questions that `verify` asks of one recorded reply.

Some need no weights: does the key belong to the request, do the ids spell the text, could the
reply have ended this way? The others put the judge's scores beside each token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from course_utils.models.catalogue import catalogue
from course_utils.models.judge import Judge
from course_utils.models.masks import ENDS, NotAllowed, walk
from course_utils.models.recordings import request_of
from course_utils.models.seam import Request, reply_text
from course_utils.models.tokenizer import CourseTokenizer, tokenizer

# How far (in logits) the judge may prefer another token. Two honest engines differ by up to 0.3 or
# so where two tokens are nearly equal; a replaced token lies ten or more behind.
TOLERANCE = 0.5
# A sampled token may be any token that is not absurd: this much probability, as a logarithm. At
# temperature 1 honest samples of the small model went down to 2e-8, one token in two hundred.
FLOOR = math.log(1e-10)
# All tokens of a sample together: how many standard deviations less likely than expected.
UNLIKELY = 5.0
# Recorded candidates (`alternatives`) are compared with the judge's as log-probabilities.
CANDIDATE_TOLERANCE = 1.0
# llama.cpp ends a reply at any of these, whichever the model chose.
END_NAMES = (*ENDS, "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")

Margin = tuple[float | None, int | None]


@dataclass
class Verdict:
    """What the judge found about one reply.

    `margins` has one pair per token, and one for the end token of a reply that ended by itself:
    how many logits the token was ahead of the best other one (below zero: behind), and that
    other token's id. Where the grammar left no choice both are None.
    """

    margins: list[Margin] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    worst: float | None = None
    # Of a sample: its summed log-probability less the expected one, and the variance of that sum.
    deviation: float = 0.0
    variance: float = 0.0


def tokenizer_of(record: dict[str, Any]) -> CourseTokenizer:
    """The tokenizer of the record's model, as the catalogue names it."""
    return tokenizer(catalogue()[record["model"]].tokenizer)


def end_ids(tok: CourseTokenizer) -> list[int]:
    """The ids at which the engine ends a reply."""
    return [tok.encode(name)[0] for name in END_NAMES]


def form_problems(record: dict[str, Any]) -> list[str]:
    """What is wrong with a record by itself, without weights; empty if nothing is.

    >>> form_problems({"model": "gpt-2"})
    ["no model of the catalogue is called 'gpt-2'"]
    """
    model = catalogue().get(record["model"])
    if model is None:
        return [f"no model of the catalogue is called {record['model']!r}"]
    tok = tokenizer_of(record)
    ids = record["ids"]
    strange = [i for i in ids if not _is_token(i, tok)]
    if strange:
        return [f"{strange[0]!r} is not a token id of this model"]
    request = request_of(record, tok)
    problems = []
    if request.key(model.sha256) != record["key"]:
        problems.append("the key is not the hash of this request (prompt or settings changed)")
    if reply_text(ids, request.stop, tok.decode) != record["text"]:
        problems.append("the text is not what the token ids spell")
    for name, count in (("prompt_tokens", request.prompt_ids), ("output_tokens", ids)):
        if record.get(name, len(count)) != len(count):
            problems.append(f"{name} is {record[name]}, but there are {len(count)}")
    rows, given = len(ids) + (record["finish_reason"] == "stop"), record.get("alternatives")
    if given and len(given) != rows and not _without_the_stop(len(given), record, tok):
        problems.append(f"candidates are given for {len(given)} of {rows} tokens")
    return problems + list(_finish_problems(record["finish_reason"], ids, request, tok))


def _without_the_stop(given: int, record: dict[str, Any], tok: CourseTokenizer) -> bool:
    # The engine holds tokens back that may begin a stop string, and their candidates with them.
    ids = record["ids"]
    return record["finish_reason"] == "stop_string" and tok.decode(ids[:given]) == record["text"]


def _is_token(number: Any, tok: CourseTokenizer) -> bool:
    # Every token of the vocabulary has some text; numbers beyond it decode to nothing.
    return isinstance(number, int) and 0 <= number < 2**31 and tok.decode([number]) != ""


def _finish_problems(
    finish: str, ids: list[int], request: Request, tok: CourseTokenizer
) -> Iterator[str]:
    limit = request.max_new_tokens
    if finish not in ("stop", "length", "stop_string"):
        yield f"no reply ends by {finish!r}"
    if finish == "length" and len(ids) != limit:
        yield f"it claims to be cut at {limit} tokens and has {len(ids)}"
    if finish == "stop" and len(ids) >= limit:
        yield f"it has {len(ids)} tokens and an end token, but only {limit} were allowed"
    if len(ids) > limit:
        yield f"it has {len(ids)} tokens, but only {limit} were allowed"
    whole, before = tok.decode(ids), tok.decode(ids[:-1])
    found = any(mark in whole for mark in request.stop)
    if finish == "stop_string" and not found:
        yield "it claims to end at a stop string and contains none"
    if finish != "stop_string" and found:
        yield "it runs past a stop string"
    if any(mark in before for mark in request.stop):
        yield "it goes on after a stop string"
    ends = set(end_ids(tok))
    for place, token in enumerate(ids):
        if token in ends:
            yield f"token {place} is the control token {tok.decode([token])}, which ends a reply"


def judge_reply(judge: Judge, record: dict[str, Any]) -> Verdict:
    """Put the judge's scores beside each token of a reply whose form is right.

    Greedy replies: each token must be the most likely one or within TOLERANCE of it, among those
    the grammar allows if there is one; so must the end token where the model chose to end.
    Sampled replies: each token needs a probability above FLOOR at the reply's temperature, and
    the whole must not be UNLIKELY standard deviations less probable than samples are on average.
    """
    tok = tokenizer_of(record)
    request = request_of(record, tok)
    ids = record["ids"]
    verdict = Verdict()
    masks = walk(request.grammar, ids, tok) if request.grammar is not None else None
    for place, row in enumerate(judge.scores(request.prompt_ids, ids)):
        if record.get("alternatives") and place < len(record["alternatives"]):
            _compare_candidates(row, record["alternatives"][place], place, verdict)
        if place == len(ids) and record["finish_reason"] != "stop":
            break
        token = ids[place] if place < len(ids) else None
        try:
            if masks is not None:
                _cover(row, next(masks))
        except NotAllowed:
            return verdict  # the token before was outside the grammar, and that is noted already
        _judge_token(row, token, place, request.temperature, tok, verdict)
    # Nine is three nats squared: one odd token in a reply of certain ones is no proof.
    unlikely = -verdict.deviation / math.sqrt(verdict.variance + 9)
    if unlikely > UNLIKELY:
        verdict.problems.append(
            f"as a whole it is {unlikely:.1f} standard deviations too improbable for a sample"
        )
    return verdict


def _cover(row: Any, mask: Any) -> None:
    import torch

    row[: len(mask)][~torch.from_numpy(mask)] = -math.inf
    row[len(mask) :] = -math.inf


def _judge_token(
    row: Any, token: int | None, place: int, temperature: float, tok: CourseTokenizer, to: Verdict
) -> None:
    # None stands for the end token: whichever of them the judge finds most likely.
    if token is None:
        token = max(end_ids(tok), key=lambda end: float(row[end]))
    logprobs = (row / (temperature or 1)).log_softmax(-1)
    logprob, score = float(logprobs[token]), float(row[token])
    row[token] = -math.inf
    other = int(row.argmax())
    margin = score - float(row[other])
    name = f"token {place} {tok.decode([token])!r}"
    if math.isinf(score):
        to.problems.append(f"{name}: the grammar does not allow it there")
        return
    if math.isinf(margin):
        to.margins.append((None, None))
        return
    to.margins.append((round(margin, 3), other))
    if temperature > 0:
        probable = logprobs[
            logprobs > -60
        ]  # the rest weighs nothing, and 0 x infinity is no number
        expected = float((probable.exp() * probable).sum())
        to.deviation += logprob - expected
        to.variance += float((probable.exp() * probable**2).sum()) - expected**2
        if logprob < FLOOR:
            to.problems.append(f"{name}: probability {math.exp(logprob):.1e}, too low to be drawn")
        return
    to.worst = margin if to.worst is None else min(margin, to.worst)
    if margin < -TOLERANCE:
        to.problems.append(
            f"{name}: margin {margin:.2f}, the judge expects {tok.decode([other])!r}"
        )


def _compare_candidates(row: Any, candidates: list[list], place: int, to: Verdict) -> None:
    logprobs = row.log_softmax(-1)
    for token, recorded in candidates:
        judged = float(logprobs[token])
        if abs(judged - recorded) > CANDIDATE_TOLERANCE:
            to.problems.append(
                f"token {place}: candidate {token} is recorded with log-probability "
                f"{recorded:.2f}, the judge says {judged:.2f}"
            )
