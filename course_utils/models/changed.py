"""Which recordings a submission touches, as git sees it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

KEY = re.compile(r'^\+\{.*?"key": ?"([0-9a-f]{64})"', re.MULTILINE)


def keys_changed_since(revision: str, folder: Path) -> set[str]:
    """The keys of recordings and margins whose lines were added or altered since a revision.

    The comparison is with the point where this branch left `revision`, and includes what is not
    committed yet. On a clone that does not hold that revision nothing can be compared: then a
    line says so and the set is empty.

    >>> keys_changed_since("HEAD", RECORDINGS)  # doctest: +SKIP
    set()
    """
    base = _git(folder, "merge-base", revision, "HEAD")
    changes = base and _git(folder, "diff", "--unified=0", base.strip(), "--", ".")
    if changes is None:
        print(f"git cannot compare with {revision!r} here: going by the stored margins alone.")
        return set()
    return set(KEY.findall(changes))


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
