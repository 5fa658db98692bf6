"""Where things are in the repository, and which notebooks there are."""

from pathlib import Path

from course_utils.errors import CourseError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
RECORDINGS = ROOT / "data" / "recordings"
HTML = ROOT / "build" / "html"


def all_notebooks(folder: Path = NOTEBOOKS) -> list[Path]:
    """The notebooks of the course in reading order: files named NN_slug.ipynb."""
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))


def choose(names: list[str], folder: Path = NOTEBOOKS) -> list[Path]:
    """The notebooks that `names` mean ("1", "01", "01_slug" or a path); all if there are none.

    Raises CourseError for a name that no notebook has, and if there are no notebooks at all.

    >>> choose(["01"])  # doctest: +SKIP
    [PosixPath('…/notebooks/01_raw_json_tool_calls.ipynb')]
    """
    existing = all_notebooks(folder)
    if not existing:
        raise CourseError(f"There is no notebook (NN_name.ipynb) in the folder {folder.name}.")
    if not names:
        return existing
    chosen = [_one(name, existing) for name in names]
    return sorted(set(chosen))


def _one(name: str, existing: list[Path]) -> Path:
    stem = Path(name).name.removesuffix(".ipynb")
    number = stem.split("_")[0].zfill(2)
    for path in existing:
        if path.stem == stem or (stem.isdecimal() and path.name.startswith(f"{number}_")):
            return path
    numbers = ", ".join(path.name[:2] for path in existing)
    raise CourseError(f"There is no notebook {name!r}. The notebooks are: {numbers}.")


def solutions_of(notebook: Path) -> list[Path]:
    """The solutions notebook that belongs to a notebook, as a list of none or one."""
    return sorted((notebook.parent / "solutions").glob(f"{notebook.name[:2]}_*.ipynb"))


def short(path: Path) -> str:
    """A path as a reader of the repository would write it: relative to its root."""
    resolved = path.resolve()
    return resolved.relative_to(ROOT).as_posix() if resolved.is_relative_to(ROOT) else path.name
