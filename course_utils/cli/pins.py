"""The pinned packages of requirements.lock, and whether this Python has them all.

Standard library only: this is read before anything is installed.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(?:\s*;\s*sys_platform\s*(==|!=)\s*'(\w+)')?$")


def read_pins(text: str, platform: str = sys.platform) -> dict[str, str]:
    """Name -> version of the lines `name==version` that apply to `platform`.

    The one marker understood is `; sys_platform == 'win32'` (or `!=`).
    Raises ValueError for any other line that is not a comment.

    >>> read_pins("tqdm==4.70.1\\ncolorama==0.4.6 ; sys_platform == 'win32'", "linux")
    {'tqdm': '4.70.1'}
    """
    pins = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = PIN.match(line)
        if match is None:
            raise ValueError(f"not a pinned package: {line!r}")
        name, version, operator, wanted = match.groups()
        if operator is None or (platform == wanted) == (operator == "=="):
            pins[name] = version
    return pins


def missing_pins(lock: Path) -> list[str]:
    """The pinned packages that this Python lacks or has in another version, as `name==version`.

    A local version such as the `+cpu` of torch counts as the version it is built from.
    """
    pins = read_pins(lock.read_text(encoding="utf-8"))
    return [f"{name}=={version}" for name, version in pins.items() if not _has(name, version)]


def _has(name: str, version: str) -> bool:
    try:
        return metadata.version(name).split("+")[0] == version
    except metadata.PackageNotFoundError:
        return False
