"""What a run has seen: the results of calls that succeeded, and what its code computed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from course_utils.claims.facts import Fact, facts, subjects, words
from course_utils.claims.instructions import DOINGS
from course_utils.code_trace import CodeRun, CodeStep

BLOCK = re.compile(r"\n\s*\n|\n(?=\[[^\]\n]+\]\()|\n(?=#+ )")
SEARCHES = re.compile(DOINGS["search"][1], re.I)
OUTPUT = re.compile(r"Execution logs:\n|Last output from code snippet:\n(?:None)?")
TOO_COMMON = {"0", "1"}  # as a start value or an index in code they say nothing


@dataclass(frozen=True)
class Source:
    """One page, record or paragraph that a tool returned; its first line may name its subject."""

    step: int
    tool: str
    text: str
    about: frozenset[str]

    @cached_property
    def facts(self) -> list[Fact]:
        """What it says."""
        return facts(self.text, self.about)


class Evidence:
    """Everything that may bear out an answer."""

    def __init__(self, run: CodeRun) -> None:
        self.run = run
        self.sources = list(_sources(run))
        self.seen = "\n".join([*(source.text for source in self.sources), *run.given])
        self.said_numbers = [
            fact
            for said in (facts(run.task), *(source.facts for source in self.sources))
            for fact in said
            if fact.number is not None
        ] + [Fact("", str(size), str(size)) for size in _sizes(run)]
        self.known_words = words(f"{run.task}\n{self.seen}")
        self._spelled = ["\n".join(written(step.code or "")) for step in run.steps]

    def bears_out(self, fact: Fact) -> bool:
        """Whether a fact of the answer was seen, was asked with, or was computed by code."""
        if fact.number is not None:
            said = [other for other in self.said_numbers if _comparable(fact, other)]
            # What is said of the same thing decides, if anything is.
            same = [other for other in said if fact.kind and other.about & fact.about]
            if any(_fits(fact, other) for other in same or said):
                return True
        elif fact.kind == "name":
            if words(fact.value) <= self.known_words:
                return True
        elif any(
            fact.kind == other.kind and fact.same_value(other)
            for source in self.sources
            for other in source.facts
        ):
            return True
        return self._computed(fact)

    def _computed(self, fact: Fact) -> bool:
        """Whether code made it: it is printed, or in what code handed over as the answer, and the
        model had not spelled it out in its code until then."""
        spelled = False
        for step, own in zip(self.run.steps, self._spelled, strict=True):
            spelled = spelled or _spells(fact, own)
            final = step.is_final and step.code is not None
            if not spelled and (final or _says(fact, _printed(step))):
                return True
        return False


def _says(fact: Fact, text: str) -> bool:
    if fact.number is None:
        return words(fact.text) <= words(text)
    return any(_fits(fact, other) for other in facts(text))


def _spells(fact: Fact, text: str) -> bool:
    if fact.number is None:
        return bool(words(fact.text) & words(text))
    return any(_fits(fact, other) for other in facts(text))


def _comparable(fact: Fact, other: Fact) -> bool:
    return other.number is not None and (fact.kind == other.kind or "" in (fact.kind, other.kind))


def _fits(fact: Fact, other: Fact) -> bool:
    return _comparable(fact, other) and fact.same_value(other)


def _sizes(run: CodeRun) -> Iterator[int]:
    """How many entries the lists have that tools returned: people count them."""
    for call in run.calls:
        try:
            value = json.loads(call.result or "")
        except ValueError:
            continue
        if call.ok and isinstance(value, list):
            yield len(value)


def _sources(run: CodeRun) -> Iterator[Source]:
    latest = {(call.name, repr(call.arguments)): call for call in run.calls if call.ok}
    for step in run.steps:
        for call in step.calls:
            if not call.ok or latest[call.name, repr(call.arguments)] is not call:
                continue
            asked = " ".join(map(str, call.arguments.values()))
            # A query holds many words; any other argument says what the result is about.
            about = subjects(asked) if SEARCHES.search(call.name) else frozenset(words(asked))
            # Without a recorded result, what the step printed stands for it.
            result = _printed(step) if call.result is None else call.result
            for text in _blocks(result):
                title = subjects(text.lstrip().split("\n", 1)[0])
                yield Source(step.number, call.name, text, title or about)


def _blocks(text: str) -> list[str]:
    """A result cut into pages: records of a JSON list, or paragraphs under a title line."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, list):
        return [json.dumps(item, ensure_ascii=False) for item in value]
    if isinstance(value, dict) and value and all(isinstance(v, dict) for v in value.values()):
        return [json.dumps({k: v}, ensure_ascii=False) for k, v in value.items()]
    return [block for block in BLOCK.split(text) if block.strip()]


def _printed(step: CodeStep) -> str:
    if step.code is None:
        return ""
    return OUTPUT.sub("", step.observation)


def written(code: str) -> Iterator[str]:
    """The texts and numbers that a program spells out; all of it if it does not parse.

    Numbers that only steer the computation (an index, a factor, a bound) are left out.

    >>> list(written("t = 22\\nfinal_answer(f'{t} in {x[3]}')"))
    ['22', ' in ']
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        yield code
        return
    steering: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            steering |= set(ast.walk(node.slice))
        elif isinstance(node, ast.BinOp | ast.Compare):
            steering |= set(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("range", "round"):
            steering |= set(node.args)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            if node not in steering and str(node.value) not in TOO_COMMON:
                yield str(node.value)
