"""Imports inside the package point one way, and heavy libraries load only when they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.cli.places import ROOT

PACKAGE = ROOT / "course_utils"
# Each layer may import itself and the layers before it.
LAYERS = [
    {"errors", "messages"},
    {"schemas", "arguments", "tools", "parsing", "events", "trace", "memory"},
    {"models"},
    {"approval", "agent", "guards", "react", "retry"},
    {"injection", "dojo", "evaluation", "claims", "code_trace", "show", "otel"},
    {"widgets"},
]
APART = {"world", "sandbox", "exercises"}  # import nothing of the others but errors
# May import everything; the last three look at the course itself.
FREE = {"cli", "__main__", "__init__", "course_map", "minutes", "selfcheck"}
# Subclasses of a library's class; a method imports them when it is called.
ADAPTERS = {
    "models/langchain_model.py",
    "sandbox/smolagents_executor.py",
    "models/smolagents_model.py",
}
HEAVY = {
    "torch",
    "transformers",
    "smolagents",
    "xllamacpp",
    "langchain",
    "langchain_core",
    "langgraph",
    "matplotlib",
    "playwright",
}


def part_of(path: Path, package: Path) -> str:
    """The first name under course_utils: `models` for course_utils/models/chat.py."""
    return path.relative_to(package).parts[0].removesuffix(".py")


def imported_modules(tree: ast.AST) -> set[str]:
    """The full names of the modules that a tree imports (`from a import b` counts as a and a.b)."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def allowed(part: str) -> set[str] | None:
    """What a part of the package may import from it; None if everything."""
    if part in FREE:
        return None
    if part == "exercises":  # its checks look at what happened in the world
        return APART | {"errors"}
    if part in APART:
        return {part, "errors"}
    if part == "injection":  # its judge is what happened in the world
        return set().union(*LAYERS[:5]) | {"world"}
    for index, layer in enumerate(LAYERS):
        if part in layer:
            return set().union(*LAYERS[: index + 1])
    return set()


def wrong_imports(path: Path, package: Path = PACKAGE) -> list[str]:
    """Imports of the module at `path` that point the wrong way."""
    may = allowed(part_of(path, package))
    names = imported_modules(ast.parse(path.read_text(encoding="utf-8")))
    parts = {name.split(".")[1] for name in names if name.startswith("course_utils.")}
    known = set().union(*LAYERS, APART, FREE)
    return sorted(parts & known - may) if may is not None else []


def heavy_imports(path: Path) -> list[str]:
    """Heavy libraries that the module at `path` imports while it is itself imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):  # what stands in functions runs later
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    return sorted({name.split(".")[0] for name in imported_modules(tree)} & HEAVY)


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_module_imports_only_what_is_below_it(path):
    assert allowed(part_of(path, PACKAGE)) != set(), "name this module's layer in this test"
    assert wrong_imports(path) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_module_loads_no_heavy_library(path):
    if path.relative_to(PACKAGE).as_posix() not in ADAPTERS:
        assert heavy_imports(path) == []


def test_adapters_load_only_when_they_are_used():
    modules = [name.removesuffix(".py").replace("/", ".") for name in ADAPTERS]
    code = (
        "import sys, course_utils.models, course_utils.memory\n"
        f"print(sorted(set(sys.modules) & {HEAVY | {f'course_utils.{m}' for m in modules}!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize(
    ("part", "source", "found"),
    [
        ("tools", "from course_utils.models import load", ["models"]),
        ("tools", "from course_utils import agent", ["agent"]),
        ("tools", "def f():\n    import course_utils.agent", ["agent"]),
        ("world", "from course_utils.messages import Message", ["messages"]),
        ("show", "from course_utils.widgets import x", ["widgets"]),
        ("world", "from course_utils.errors import CourseError", []),
        ("agent", "from course_utils.tools import run_call", []),
        ("cli", "from course_utils.widgets import x", []),
    ],
)
def test_wrong_direction_is_found(tmp_path, part, source, found):
    module = tmp_path / f"{part}.py"
    module.write_text(source)
    assert wrong_imports(module, tmp_path) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch", ["torch"]),
        ("from transformers.utils import x", ["transformers"]),
        ("class A:\n    import smolagents", ["smolagents"]),
        ("def f():\n    import torch", []),
        ("if TYPE_CHECKING:\n    import torch", []),
    ],
)
def test_heavy_import_at_top_level_is_found(tmp_path, source, found):
    module = tmp_path / "module.py"
    module.write_text(source)
    assert heavy_imports(module) == found
