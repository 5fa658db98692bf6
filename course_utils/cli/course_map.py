"""The table of notebooks in the README, made from the notebooks themselves."""

import re
from pathlib import Path

from course_utils.cli import places
from course_utils.cli.execution import read_notebook
from course_utils.cli.normalise import write_atomically
from course_utils.errors import CourseError

BEGIN, END = "<!-- course map: written by `execute` -->", "<!-- end of course map -->"


def update_readme(readme: Path = places.ROOT / "README.md") -> None:
    """Bring the course map in the README up to date; an unchanged file is not written."""
    before = readme.read_text(encoding="utf-8")
    after = with_map(before, course_map(places.all_notebooks()))
    if after != before:
        write_atomically(readme, after)
        print(f"written {places.short(readme)} (course map)")


def with_map(text: str, table: str) -> str:
    """The text with `table` between the two marks of the course map; CourseError without them."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):  # what follows could not be told from the old map, and would be lost
        raise CourseError(
            f"The course map in README.md was not written: the file needs the line {BEGIN!r} and "
            f"after it the line {END!r}."
        )
    return f"{head}{BEGIN}\n{table}\n{END}{tail}"


def course_map(notebooks: list[Path]) -> str:
    """A Markdown table: number, title linked to the notebook, minutes, solutions."""
    rows = ["| | notebook | minutes | |", "|---|---|---|---|"]
    for path in notebooks:
        title, minutes = title_and_minutes(path)
        solutions = [f"[solutions]({link(s)})" for s in places.solutions_of(path)]
        columns = (path.name[:2], f"[{title}]({link(path)})", minutes, " ".join(solutions))
        rows.append(f"| {' | '.join(columns)} |")
    return "\n".join(rows)


def title_and_minutes(path: Path) -> tuple[str, str]:
    """The first heading of a notebook, and the first number of minutes it states ("" if none)."""
    cells = read_notebook(path).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    heading = re.search(r"(?m)^# +(.+?)\s*$", prose)
    minutes = re.search(r"(\d+)\W*minutes", prose)
    title = heading.group(1) if heading else path.stem
    title = re.sub(rf"^{path.name[:2]}\W+", "", title)
    return title.replace("|", "\\|"), minutes.group(1) if minutes else ""


def link(path: Path) -> str:
    return f"notebooks/{path.relative_to(places.NOTEBOOKS).as_posix()}"
