"""Whether a weights file is the right one, answered at once if it was answered before.

Hashing a gigabyte takes seconds, so the verdict is noted beside the file together with its size
and time of change; a file that was touched since is hashed again.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from course_utils.models.catalogue import ModelSpec
from course_utils.models.partial import BLOCK


def is_good(target: Path, model: ModelSpec) -> bool:
    """Whether the file is there and right. A SHA-256 is computed once and then remembered.

    Raises OSError if the file is there but cannot be read.

    >>> is_good(Path("nowhere.gguf"), spec("qwen2.5-coder-0.5b"))
    False
    """
    try:
        found = target.stat()
    except FileNotFoundError:
        return False
    if found.st_size != model.bytes:
        return False
    if _recall(target) == _fingerprint(target, model):
        return True
    digest = hashlib.sha256()
    with target.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    if digest.hexdigest() != model.sha256:
        return False
    # In a shared read-only folder nothing can be noted. That costs seconds next time, no more.
    with suppress(OSError):
        remember(target, model)
    return True


def _memory_of(target: Path) -> Path:
    return target.with_name(target.name + ".verified.json")


def _fingerprint(target: Path, model: ModelSpec) -> dict:
    found = target.stat()
    return {"bytes": found.st_size, "mtime_ns": found.st_mtime_ns, "sha256": model.sha256}


def remember(target: Path, model: ModelSpec) -> None:
    """Note that this file, in its present size and age, has the right SHA-256.

    >>> remember(path, model)  # doctest: +SKIP
    """
    _memory_of(target).write_text(json.dumps(_fingerprint(target, model)), encoding="utf-8")


def forget(target: Path) -> None:
    """Drop what was noted about a file.

    >>> forget(path)  # doctest: +SKIP
    """
    _memory_of(target).unlink(missing_ok=True)


def _recall(target: Path) -> dict | None:
    try:
        return json.loads(_memory_of(target).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not noted, or damaged: then the file is hashed again
