"""The world and the exercises know nothing of messages, tools or models."""

import ast
from pathlib import Path

import pytest

import course_utils

ROOT = Path(course_utils.__file__).parent


def imported(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("world", ("course_utils.world", "course_utils.errors")),
        ("exercises", ("course_utils.exercises", "course_utils.errors")),
        (
            "show",
            (
                "course_utils.show",
                "course_utils.errors",
                "course_utils.messages",
                "course_utils.code_trace",
                "course_utils.trace",
            ),
        ),
    ],
)
def test_a_package_imports_only_what_lies_below_it(package, allowed):
    files = sorted((ROOT / package).glob("*.py"))
    assert files
    for file in files:
        if file.name.startswith("checks_"):
            continue  # the checks of a notebook may use what the notebook teaches
        for name in imported(file):
            if name.startswith("course_utils"):
                assert name.startswith(allowed), f"{file.name} imports {name}"


def test_every_world_file_is_named_in_the_data_readme():
    data = ROOT.parent / "data"
    readme = (data / "README.md").read_text(encoding="utf-8")
    for file in sorted((data / "world").rglob("*")):
        if file.is_file():
            assert file.name in readme or f"pages/{file.parent.name}/*.md" in readme, file.name
