"""`lock`: rebuild requirements.lock from pyproject.toml in a fresh environment (maintainers)."""

import re
import subprocess
import sys
import tempfile
import tomllib
from argparse import Namespace
from importlib import metadata
from pathlib import Path

from course_utils.cli import install, places
from course_utils.cli.normalise import write_atomically
from course_utils.errors import CourseError

PLATFORMS = {
    "linux": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    "darwin": {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    "win32": {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
}
HEADER = """\
# Every package of the course with its version, for Linux, macOS and Windows.
# Written by `make lock` from pyproject.toml; do not edit by hand.
"""


def lock_verb(arguments: Namespace) -> int:
    """Install pyproject's packages afresh, see what came, and write requirements.lock."""
    direct = tomllib.loads((places.ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    with tempfile.TemporaryDirectory(prefix="course-lock-") as folder:
        venv = Path(folder) / "venv"
        install.run_quietly([sys.executable, "-m", "venv", str(venv)], "python -m venv")
        wanted = Path(folder) / "direct.txt"
        wanted.write_text("\n".join(direct) + "\n", encoding="utf-8")
        pins = dict(requirement.split("==") for requirement in direct)
        install.install_packages(venv, wanted, pins)
        python = install.python_of(venv)
        site = [str(next(venv.glob("[Ll]ib*/**/site-packages")))]
        lines = locked_lines(direct, site, latest=lambda name: latest_version(python, name))
    write_atomically(places.ROOT / "requirements.lock", HEADER + "\n".join(lines) + "\n")
    print(f"{len(lines)} packages in requirements.lock")
    return 0


def locked_lines(direct: list[str], site: list[str], latest) -> list[str]:
    """The lines of the lock: all packages that `direct` need on any platform, with markers.

    `site` are the folders where the packages are installed; `latest(name)` gives a version
    for a package that other platforms need and that is therefore not installed here.
    """
    installed = {normal(d.name): d for d in metadata.distributions(path=site)}
    needed = {name: closure(direct, installed, env) for name, env in PLATFORMS.items()}
    lines = []
    for package in sorted(set().union(*needed.values())):
        platforms = {platform for platform, names in needed.items() if package in names}
        found = installed.get(package)
        version = found.version.split("+")[0] if found else latest(package)
        lines.append(f"{package}=={version}{marker(platforms)}")
    return lines


def closure(direct: list[str], installed: dict, environment: dict[str, str]) -> set[str]:
    """The names of all packages that `direct` lead to under those environment markers."""
    from packaging.requirements import Requirement

    names: set[str] = set()
    seen: set[tuple[str, str]] = set()
    todo = [Requirement(line) for line in direct]
    while todo:
        requirement = todo.pop()
        name = normal(requirement.name)
        names.add(name)
        for extra in {"", *requirement.extras}:
            if (name, extra) in seen or name not in installed:
                continue
            seen.add((name, extra))
            for line in installed[name].requires or []:
                child = Requirement(line)
                if child.marker is None or child.marker.evaluate(environment | {"extra": extra}):
                    todo.append(child)
    return names


def marker(platforms: set[str]) -> str:
    """The marker that is true on exactly those of the three platforms.

    >>> marker({"linux", "darwin"})
    " ; sys_platform != 'win32'"
    """
    others = set(PLATFORMS) - platforms
    if not others:
        return ""
    if len(others) == 1:
        return f" ; sys_platform != '{others.pop()}'"
    (only,) = platforms
    return f" ; sys_platform == '{only}'"


def normal(name: str) -> str:
    """A package name in the one form that the index compares: lower case, single hyphens."""
    return re.sub(r"[-_.]+", "-", name).lower()


def latest_version(python: Path, name: str) -> str:
    """The newest version of a package in the index."""
    command = [str(python), "-m", "pip", "index", "versions", name]
    done = subprocess.run(command, capture_output=True, text=True)
    match = re.match(r"\S+ \(([^)]+)\)", done.stdout)
    if match is None:
        raise CourseError(f"The package index knows no version of {name}.")
    return match.group(1)
