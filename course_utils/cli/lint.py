"""Rules that every stored notebook keeps; each is a function from a notebook to complaints.

A complaint names the cell by its position in the file (from 1). Two tags make exceptions:
`raises-exception` (this cell must fail) and `long` (more lines or words than usual, on purpose).
"""

import ast
import copy
import re
from collections.abc import Callable, Iterator

from course_utils.cli.normalise import normalise

CODE_LINES, LONG_CODE_LINES = 15, 25
PROSE_WORDS = 80
OUTPUT_LINES = 20
CODE_RUN = 2  # code cells in a row without prose
CURTAIN = "Guess first"
SLIDE_TYPES = {"slide", "subslide", "fragment", "skip", "notes", "-"}

MACHINE = {
    "a memory address": r"\b0x[0-9a-fA-F]{6,}\b",
    "an object's default repr": r"<[\w.]+ object\b|<function \w+ at|<bound method",
    "a path of one machine": r"(?<![\w:/.])/(home|root|Users|tmp|var|opt|usr|work)/\w|\b[A-Z]:\\\w",
    "a time of day": r"(?<!\d{4}-\d\d-\d\d[T ])\b\d\d:\d\d:\d\d\b|\d\d:\d\d:\d\d\.\d|Wall time",
}


def lint(notebook, solutions: bool = False) -> list[str]:
    """All complaints about a notebook; slide types are not asked of a solutions notebook."""
    rules = [rule for rule in RULES if not (solutions and rule is slide_types)]
    return [complaint for rule in rules for complaint in rule(notebook)]


def stored_form(notebook) -> Iterator[str]:
    """Ids, metadata, counts and tracebacks are as `execute` leaves them."""
    expected = copy.deepcopy(notebook)
    normalise(expected)
    if expected.metadata != notebook.metadata:
        yield "notebook metadata is not in its stored form; run execute"
    for at, (cell, wanted) in enumerate(zip(notebook.cells, expected.cells, strict=True), 1):
        parts = [key for key in wanted if wanted[key] != cell.get(key)]
        if parts:
            yield f"cell {at}: {', '.join(parts)} not in stored form; run execute"


def execution_counts(notebook) -> Iterator[str]:
    """Code cells are numbered 1, 2, … in the order in which they stand."""
    for number, (at, cell) in enumerate(_code(notebook), 1):
        if cell.execution_count != number:
            yield f"cell {at}: execution count {cell.execution_count}, expected {number}"


def no_empty_cells(notebook) -> Iterator[str]:
    for at, cell in _cells(notebook):
        if not cell.source.strip():
            yield f"cell {at}: empty"


def valid_ids(notebook) -> Iterator[str]:
    seen = set()
    for at, cell in _cells(notebook):
        identity = cell.get("id", "")
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", identity) or identity in seen:
            yield f"cell {at}: id {identity!r} is invalid or used twice"
        seen.add(identity)


def alt_texts(notebook) -> Iterator[str]:
    """Every picture says in words what it shows."""
    for at, cell in _cells(notebook):
        markup = cell.source if cell.cell_type == "markdown" else ""
        if re.search(r"!\[\s*\]\(", markup):
            yield f"cell {at}: a picture without alt text, ![](…)"
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            markup += data.get("text/html", "") + data.get("image/svg+xml", "")
            for kind in ("image/png", "image/jpeg"):
                if kind in data and not output.metadata.get(kind, {}).get("alt"):
                    yield f"cell {at}: {kind} without alt text"
        yield from _markup_without_alt(at, markup)


def _markup_without_alt(at: int, markup: str) -> Iterator[str]:
    for tag in re.findall(r"<img\b[^>]*>", markup):
        if not re.search(r"\balt=([\"'])\s*[^\"'\s]", tag):
            yield f"cell {at}: <img> without alt text"
    for attributes, inside in re.findall(r"<svg\b([^>]*)>(.*?)</svg>", markup, re.DOTALL):
        named = "aria-label=" in attributes or "<title" in inside
        hidden = 'aria-hidden="true"' in attributes
        if not hidden and not ('role="img"' in attributes and named):
            yield f'cell {at}: <svg> without role="img" and aria-label or title'


def no_machine_text(notebook) -> Iterator[str]:
    """Outputs hold nothing that differs from machine to machine or from run to run."""
    for at, cell in _code(notebook):
        for output in cell.outputs:
            for what, pattern in MACHINE.items():
                found = re.search(pattern, _text(output))
                if found:
                    yield f"cell {at}: the output holds {what}: {found.group()!r}"


def errors_are_tagged(notebook) -> Iterator[str]:
    """A cell fails if and only if it is tagged raises-exception."""
    for at, cell in _code(notebook):
        tagged = "raises-exception" in cell.metadata.get("tags", [])
        failed = any(output.output_type == "error" for output in cell.outputs)
        if failed and not tagged:
            yield f"cell {at}: an error, but no tag raises-exception"
        if tagged and not failed:
            yield f"cell {at}: tagged raises-exception, but no error"


def nothing_on_stderr(notebook) -> Iterator[str]:
    for at, cell in _code(notebook):
        if any(output.get("name") == "stderr" for output in cell.outputs):
            yield f"cell {at}: output on stderr"


def widget_state(notebook) -> Iterator[str]:
    """Widget metadata without its state makes code hosts refuse the whole notebook."""
    for kind, content in notebook.metadata.get("widgets", {}).items():
        if "state" not in content:
            yield f"metadata.widgets[{kind!r}] has no state"


def short_code(notebook) -> Iterator[str]:
    for at, cell in _code(notebook):
        limit = LONG_CODE_LINES if _is_long(cell) else CODE_LINES
        lines = len(cell.source.splitlines())
        if lines > limit:
            yield f"cell {at}: {lines} lines of code, at most {limit}"


def short_prose(notebook) -> Iterator[str]:
    for at, cell in _cells(notebook):
        words = prose_words(cell.source) if cell.cell_type == "markdown" else 0
        if words > PROSE_WORDS and not _is_long(cell):
            yield f"cell {at}: {words} words, at most {PROSE_WORDS}"


def prose_words(source: str) -> int:
    """Words of running text: without code blocks, tables, markup and the targets of links."""
    for pattern in (r"(?ms)^```.*?^```", r"(?s)<svg.*?</svg>", r"(?m)^\s*\|.*$", r"<[^>]+>"):
        source = re.sub(pattern, " ", source)
    source = re.sub(r"\]\([^)]*\)", "]", source)
    return sum(1 for word in source.split() if re.search(r"\w", word))


def prose_between_code(notebook) -> Iterator[str]:
    run = 0
    for at, cell in _cells(notebook):
        run = run + 1 if cell.cell_type == "code" else 0
        if run == CODE_RUN + 1:
            yield f"cell {at}: more than {CODE_RUN} code cells in a row without prose"


def forbidden_code(notebook) -> Iterator[str]:
    """No star imports, no installing, no shell, no input()."""
    for at, cell in _code(notebook):
        if re.search(r"(?m)^\s*(!|%+(pip|conda|sh|bash)\b)", cell.source):
            yield f"cell {at}: a shell or package command"
        for node in ast.walk(_tree(cell.source)):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                yield f"cell {at}: from {node.module} import *"
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "input":
                yield f"cell {at}: input()"


def folded_answers(notebook) -> Iterator[str]:
    """A folded output begins with the neutral line of curtain(): JupyterLab shows its first."""
    for at, cell in _code(notebook):
        if cell.metadata.get("jupyter", {}).get("outputs_hidden") and cell.outputs:
            if not _text(cell.outputs[0]).startswith(CURTAIN):
                yield f"cell {at}: folded, but without curtain() its first line shows the answer"


def slide_types(notebook) -> Iterator[str]:
    for at, cell in _cells(notebook):
        if cell.metadata.get("slideshow", {}).get("slide_type") not in SLIDE_TYPES:
            yield f"cell {at}: no slide type"


def short_outputs(notebook) -> Iterator[str]:
    """Text that is shown as text; where HTML is shown, its text twin is not counted."""
    for at, cell in _code(notebook):
        shown = [o for o in cell.outputs if "text/html" not in o.get("data", {})]
        lines = sum(len(_text(output).splitlines()) for output in shown)
        if lines > OUTPUT_LINES:
            yield f"cell {at}: {lines} lines of output, at most {OUTPUT_LINES}"


RULES: list[Callable] = [
    stored_form,
    execution_counts,
    no_empty_cells,
    valid_ids,
    alt_texts,
    no_machine_text,
    errors_are_tagged,
    nothing_on_stderr,
    widget_state,
    short_code,
    short_prose,
    prose_between_code,
    forbidden_code,
    folded_answers,
    slide_types,
    short_outputs,
]


def _cells(notebook) -> Iterator[tuple]:
    return enumerate(notebook.cells, 1)


def _code(notebook) -> Iterator[tuple]:
    return ((at, c) for at, c in _cells(notebook) if c.cell_type == "code" and c.source.strip())


def _is_long(cell) -> bool:
    return "long" in cell.metadata.get("tags", [])


def _text(output) -> str:
    data = output.get("data", {})
    parts = [output.get("text", ""), output.get("evalue", "")]
    return "\n".join(filter(None, parts + [data.get("text/plain"), data.get("text/html")]))


def _tree(source: str) -> ast.AST:
    try:
        return ast.parse(source)
    except SyntaxError:  # a magic, or a cell that shows a syntax error: read it line by line
        lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError:
            return ast.Module(body=[], type_ignores=[])
