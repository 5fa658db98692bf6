"""The course map and the glossary, read from the notebooks that exist.

Nothing is listed by hand: a new notebook appears in the map, and its terms in the glossary, as
soon as its file is there and notebook 00 is executed again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from course_utils.cli import places
from course_utils.cli.course_map import title_and_minutes
from course_utils.show import View, table
from course_utils.show.view import TEXT, safe

# Which part of an agent a notebook is mostly about; one that is not named here is about all of it.
# The four parts: Lilian Weng, LLM Powered Autonomous Agents, 2023.
PARTS = {
    "00": "model",
    "01": "tool use",
    "02": "model, tool use",
    "03": "planning: the loop",
    "04": "tool use",
    "05": "tool use",
    "06": "memory",
    "07": "memory",
    "08": "tool use, planning",
}
WHOLE = "the whole agent"
TERM = re.compile(r"^> \*\*(?P<term>[^*\n]+?)\.?\*\* *(?P<text>[^\n]*(?:\n>[^\n]*)*)", re.M)
ABILITY = re.compile(
    r"(?:\byou (?:can|will be able to)|\bable to)\b:?\s*(.+?)(?:\.(?=\s|$)|\Z)", re.S
)


@dataclass(frozen=True)
class Entry:
    """One notebook as the map shows it; `minutes` is None if its opener states none."""

    number: str
    title: str
    minutes: int | None
    part: str
    learn: str
    path: Path


@dataclass(frozen=True)
class Term:
    """A definition, and the number of the notebook that gives it first."""

    name: str
    text: str
    notebook: str


def entries(folder: Path = places.NOTEBOOKS) -> list[Entry]:
    """The notebooks of a folder in reading order.

    >>> entries()[0].number
    '00'
    """
    return [_entry(path) for path in places.all_notebooks(folder)]


def terms(folder: Path = places.NOTEBOOKS) -> list[Term]:
    """The `> **Term.** definition` boxes of all notebooks, by alphabet; the first one counts."""
    found: dict[str, Term] = {}
    for path in places.all_notebooks(folder):
        for match in TERM.finditer("\n\n".join(_prose(path))):
            text = " ".join(line.lstrip("> ") for line in match["text"].splitlines())
            name = match["term"].strip()
            found.setdefault(name.casefold(), Term(name, plain(text), path.name[:2]))
    return [found[name] for name in sorted(found)]


def course_map(folder: Path = places.NOTEBOOKS) -> View:
    """The table of notebooks: title, part of the agent, minutes, what you will be able to do."""
    rows = entries(folder)
    columns = ["", "notebook", "part", "minutes", "after it you can"]
    cells = [[e.number, e.title, e.part, e.minutes or "", e.learn] for e in rows]
    text = table(cells, columns, "The notebooks of this course").text
    head = "".join(f'<th scope="col" style="text-align: left">{safe(c)}</th>' for c in columns)
    body = "".join(_row(entry, folder) for entry in rows)
    return View(
        text,
        f'<table style="{TEXT}"><caption style="text-align: left">The notebooks of this course'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
    )


def glossary(folder: Path = places.NOTEBOOKS) -> View:
    """All terms with their definitions and the notebook where each first appears."""
    rows = [[term.name, term.text, term.notebook] for term in terms(folder)]
    return table(rows, ["term", "meaning", "notebook"], "Glossary")


def plain(markdown: str) -> str:
    """Markdown without its emphasis, code marks and link targets, on one line.

    >>> plain("a **bold** [link](x.html) and `code`")
    'a bold link and code'
    """
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    text = re.sub(r"\*{1,3}|`", "", text)
    return " ".join(text.split())


def _entry(path: Path) -> Entry:
    number = path.name[:2]
    title, stated = title_and_minutes(path)
    opener = next(iter(_prose(path)), "")
    return Entry(
        number=number,
        title=title,
        minutes=int(stated) if stated else None,
        part=PARTS.get(number, WHOLE),
        learn=_abilities(opener),
        path=path,
    )


def _abilities(opener: str) -> str:
    """What the opener promises: its list of points, or the sentence with "you can"."""
    points = re.findall(r"^\s*[-*] +(.+)$", opener, re.M)
    if points:
        return plain("; ".join(point.strip().rstrip(".;,") for point in points))
    sentence = ABILITY.search(opener)
    return plain(sentence[1]) if sentence else ""


def _prose(path: Path) -> list[str]:
    import nbformat

    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def _row(entry: Entry, folder: Path) -> str:
    # Relative to the notebooks, so that a click in JupyterLab opens the notebook itself.
    link = safe(entry.path.relative_to(folder).as_posix())
    first = (
        f'<th scope="row" style="text-align: left"><a href="{link}">{safe(entry.number)}</a></th>'
    )
    rest = [entry.title, entry.part, entry.minutes or "", entry.learn]
    return (
        f"<tr>{first}"
        + "".join(f'<td style="text-align: left">{safe(c)}</td>' for c in rest)
        + "</tr>"
    )
