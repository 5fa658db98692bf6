"""What a task tells an agent to do, held against what the trace shows it did."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from course_utils.claims.facts import names, words
from course_utils.code_trace import Call, CodeRun
from course_utils.code_trace.names import BUILTINS

# kind of doing -> (how a task asks for it, how tools for it are named)
DOINGS = {
    "search": (
        r"\b(?:search|look up|browse|google|find out|research)\b",
        r"search|lookup|look_up|browse|wiki|google|retriev",
    ),
    "picture": (
        r"\b(?:draw|paint|sketch|illustrate)\b"
        r"|\b(?:generate|make|create|produce|render)\b[^.]{0,25}"
        r"\b(?:image|picture|photo|drawing|painting|illustration|poster|logo)\b",
        r"image|picture|photo|draw|paint",
    ),
    "send": (r"\bsend\b|\be-?mail (?=[A-Z]|him\b|her\b|them\b|the\b)", r"mail|send|notify"),
}
RUN = re.compile(r"\b(?:run|execute)\b(?! (?:out|into|the risk|away|for))", re.I)
RUNNERS = re.compile(r"run_|exec|interpreter|shell", re.I)
RAN = re.compile(r"\b(?:ran|executed|tested|verified|works (?:now|correctly|as expected))\b", re.I)
NOT = re.compile(r"\b(?:not|don't|never|without|no need to|instead of)\s+(?:\w+\s+)?$", re.I)
CONDITION = re.compile(r"\b(?:if|unless|in case|whenever)\b", re.I)
FENCE = re.compile(r"```[\w]*\n(.*?)```", re.S)
GIVEN = re.compile(r"additional arguments[^\n]*:\n(\{.*\})\.?\s*\Z", re.S)
# A thing that is described rather than named: somebody has to find out which one it is.
DESCRIBED = re.compile(
    r"\b(?:latest|newest|current|most recent|last|winner)\b|\b(?:that|which|who|whose)\b", re.I
)
FRESH = re.compile(r"\b(?:current|currently|now|today|latest|newest|most recent|tonight)\b", re.I)
INFORMS_NOT = re.compile(r"image|picture|photo|draw|paint|mail|send|notify|final_answer", re.I)
LONG = 30  # words: more of a result, passed on word for word, was not read


def asked(task: str, doing: str) -> str | None:
    """The words in which a task asks for something, unless it forbids it or makes it depend."""
    for match in re.finditer(DOINGS[doing][0], task, re.I):
        sentence = re.split(r"[.!?\n]", task[: match.start()])[-1]
        if not NOT.search(sentence) and not CONDITION.search(sentence):
            return match.group()
    return None


def tools_for(run: CodeRun, doing: str) -> list[str]:
    """The offered tools whose names say that they do it."""
    return [name for name in run.tools_offered() if re.search(DOINGS[doing][1], name, re.I)]


def left_undone(run: CodeRun) -> Iterator[tuple[str, str]]:
    """(instruction, what the trace shows) for what the task asks for and no call did."""
    used = run.tools_used()
    for doing in DOINGS:
        words_used, tools = asked(run.task, doing), tools_for(run, doing)
        if words_used and tools and not any(used[name] for name in tools):
            yield words_used, f"no call of {' or '.join(tools)} succeeded"


def pictures(run: CodeRun) -> Iterator[tuple[str, str, str]]:
    """(kind, prompt, why) for each picture that was made of a thing nobody had looked up.

    Judged by the prompt that the picture maker received, never by the picture.
    """
    makers = tools_for(run, "picture")
    subject = asked(run.task, "picture")
    can_search = bool(tools_for(run, "search"))
    described = bool(DESCRIBED.search(run.task)) and bool(names(run.task) or FRESH.search(run.task))
    seen: list[str] = []
    for call in run.calls:
        if call.name in makers and call.ok:
            prompt = " ".join(map(str, call.arguments.values()))
            whole = next((text for text in seen if _passed_on(text, prompt)), None)
            if whole is not None:
                yield "unread_result", prompt, "it is a tool's whole result, passed on unread"
            elif subject and can_search and described and not _names_from(seen, prompt, run.task):
                yield "instruction_ignored", prompt, _no_name(seen)
        elif call.ok and call.result:
            seen.append(call.result)


def _no_name(seen: list[str]) -> str:
    if seen:
        return "the picture maker's prompt has no name that any observation gave"
    return "the picture maker's prompt describes the thing; nothing was looked up before"


def _names_from(seen: list[str], prompt: str, task: str) -> bool:
    given = {word for text in seen for name in names(text, False) for word in words(name)}
    return bool((given - words(task)) & words(prompt))


def _passed_on(result: str, prompt: str) -> bool:
    parts = result.split()
    return len(parts) >= LONG and " ".join(parts[:LONG]) in " ".join(prompt.split())


# -- scripts -------------------------------------------------------------------------------------


def not_run(run: CodeRun) -> Iterator[tuple[str, str]]:
    """(instruction, what the trace shows) if a script was to be run and never ran to its end."""
    match = RUN.search(run.task)
    if not match or NOT.search(run.task[: match.start()]):
        return
    scripts = [text for text in _scripts(run.task) if _own_names(text)]
    if scripts and not any(_ran(run, script) for script in scripts):
        yield match.group(), "no step ran any version of the script without an error"


def claimed_to_run(run: CodeRun) -> Iterator[tuple[str, str]]:
    """(claim, what the trace shows) if the answer says that a script ran, and none did."""
    said = RAN.search(FENCE.sub("", run.answer or ""))
    scripts = [text for text in _scripts(run.task) if _own_names(text)]
    if said and scripts and not any(_ran(run, script) for script in scripts):
        yield said.group(), "no step ran any version of the script without an error"


def is_program(text: str) -> bool:
    """Whether a text is Python code that does something, rather than an answer in words."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    does = (ast.Assign, ast.For, ast.While, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.With)
    return any(isinstance(node, does) for node in ast.walk(tree))


def _scripts(task: str) -> list[str]:
    """Programs in a task: in fences, or among the additional arguments of a smolagents run."""
    found = FENCE.findall(task)
    if given := GIVEN.search(task):
        try:
            values: Any = ast.literal_eval(given.group(1))
        except (ValueError, SyntaxError):
            values = {}
        found += [value for value in values.values() if isinstance(value, str)]
    return [text for text in found if is_program(text)]


def _own_names(code: str) -> set[str]:
    """The names that a program gives to things, without those of Python."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError):
        return set()
    named = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return (named | {n.name for n in nodes if isinstance(n, ast.FunctionDef)}) - BUILTINS


def _ran(run: CodeRun, script: str) -> bool:
    own = _own_names(script)
    for step in run.steps:
        # In code, not in a text: a program that only hands over another one has not run it.
        here = own & _own_names(step.code or "")
        by_text = any(_runs_text(call) for call in step.calls)
        if not step.error and (2 * len(here) >= len(own) or by_text or _exec(step.code or "")):
            return True
    return False


def _exec(code: str) -> bool:
    return bool(re.search(r"\b(?:exec|runpy\.run_\w+|subprocess\.run)\(", code))


def _runs_text(call: Call) -> bool:
    return call.ok and bool(RUNNERS.search(call.name))


# -- tools never used ----------------------------------------------------------------------------


def unused_sources(run: CodeRun) -> list[str]:
    """Tools that could have told something, if the run used none of them."""
    informs = [name for name in run.tools_offered() if not INFORMS_NOT.search(name)]
    used = run.tools_used()
    return [] if any(used[name] for name in informs) else informs
