"""The dependency files agree, and everything that is imported is declared."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib import metadata

import nbformat
import pytest
import yaml

from course_utils.cli import lock, pins, places, torch_source
from course_utils.errors import CourseError

ROOT = places.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
# Used without an import of ours: programs, what pytest and pip load by themselves, and gguf, with
# which transformers reads the weights (with accelerate).
NOT_IMPORTED = {"jupyterlab", "nbval", "ruff", "ipywidgets", "ipykernel", "gguf", "accelerate"}
MAIN_PACKAGES = {"transformers", "torch", "langchain", "langgraph", "smolagents"}


def declared() -> dict[str, str]:
    return dict(line.split("==") for line in PROJECT["dependencies"])


def every_platform() -> dict[str, str]:
    every = {}
    for platform in lock.PLATFORMS:
        every |= pins.read_pins(LOCK, platform)
    return every


def test_lock_holds_every_declared_package_in_the_declared_version():
    locked = every_platform()
    assert {name: locked.get(name) for name in declared()} == declared()


def test_lock_holds_what_the_packages_need_in_turn():
    installed = {lock.normal(d.name): d for d in metadata.distributions()}
    for platform, environment in lock.PLATFORMS.items():
        needed = lock.closure(PROJECT["dependencies"], installed, environment)
        assert needed - set(pins.read_pins(LOCK, platform)) == set(), platform
    assert (
        set(every_platform())
        - set().union(
            *(lock.closure(PROJECT["dependencies"], installed, e) for e in lock.PLATFORMS.values())
        )
        == set()
    )


def test_these_tests_run_on_the_locked_versions():
    assert pins.missing_pins(ROOT / "requirements.lock") == []


def test_conda_environment_is_the_lock_on_the_tested_python():
    assert "python=3.11" in CONDA["dependencies"]
    assert PROJECT["requires-python"] == ">=3.11"
    (from_pip,) = (d["pip"] for d in CONDA["dependencies"] if isinstance(d, dict))
    assert from_pip == [
        f"--extra-index-url {torch_source.CPU_INDEX}",
        "-r requirements.lock",
        "-e .",
    ]
    assert CONDA["name"] == PROJECT["name"]


def python_sources():
    """(where, source) of everything written in Python: package, tests, notebooks."""
    for folder in ("course_utils", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    for path in sorted(places.NOTEBOOKS.rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells, 1):
            if cell.cell_type == "code":
                lines = [s for s in cell.source.splitlines() if not s.lstrip().startswith("%")]
                yield f"{path.name} cell {number}", "\n".join(lines)


def imports(source: str) -> set[str]:
    """Top-level names that a source imports anywhere in it."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set(re.findall(r"(?m)^\s*(?:import|from)\s+(\w+)", source))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


@cache
def distributions_of() -> dict[str, set[str]]:
    found = metadata.packages_distributions()
    return {module: {lock.normal(name) for name in names} for module, names in found.items()}


def undeclared(source: str, ours: set[str]) -> set[str]:
    """The imported modules that no declared distribution provides."""
    foreign = imports(source) - set(sys.stdlib_module_names) - ours
    return {m for m in foreign if not distributions_of().get(m, set()) & set(declared())}


def our_modules() -> set[str]:
    helpers = {path.stem for path in (ROOT / "tests").rglob("*.py")}
    return {"course_utils", "tests"} | helpers


def test_every_import_is_declared():
    ours = our_modules()
    found = {where: undeclared(source, ours) for where, source in python_sources()}
    assert {where: names for where, names in found.items() if names} == {}


def test_every_declared_package_is_used():
    used = set().union(*(imports(source) for _, source in python_sources()))
    providers = set().union(*(distributions_of().get(module, set()) for module in used))
    assert set(declared()) - providers - NOT_IMPORTED - MAIN_PACKAGES == set()


def test_an_undeclared_import_is_found():
    assert undeclared("def f():\n    import yaml_nonexistent", set()) == {"yaml_nonexistent"}
    assert undeclared("from traitlets import default", set()) == {"traitlets"}
    assert undeclared("import os, torch\nfrom nbformat.v4 import x", set()) == set()


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", {"a": "1", "b": "2"}), ("win32", {"a": "1", "c": "3"})],
)
def test_pins_by_platform(platform, expected):
    text = "# note\na==1\nb==2 ; sys_platform != 'win32'\nc==3 ; sys_platform == 'win32'\n"
    assert pins.read_pins(text, platform) == expected


@pytest.mark.parametrize("line", ["a>=1", "a", "-e .", "a==1 ; python_version < '3'", "a = 1"])
def test_a_line_that_pins_nothing_is_refused(line):
    with pytest.raises(ValueError, match="not a pinned package"):
        pins.read_pins(line)


def test_missing_pins_are_named(tmp_path):
    file = tmp_path / "requirements.lock"
    version = metadata.version("pytest")
    file.write_text(f"pytest=={version}\nnbval==0.0.1\nno-such-package==1\n")
    assert pins.missing_pins(file) == ["nbval==0.0.1", "no-such-package==1"]


def test_a_cpu_build_counts_as_the_pinned_version(tmp_path, monkeypatch):
    file = tmp_path / "requirements.lock"
    file.write_text("torch==2.13.0\n")
    monkeypatch.setattr(pins.metadata, "version", lambda name: "2.13.0+cpu")
    assert pins.missing_pins(file) == []


@pytest.mark.parametrize(
    ("platforms", "text"),
    [
        ({"linux", "darwin", "win32"}, ""),
        ({"linux", "darwin"}, " ; sys_platform != 'win32'"),
        ({"win32"}, " ; sys_platform == 'win32'"),
        ({"darwin"}, " ; sys_platform == 'darwin'"),
    ],
)
def test_marker_is_true_on_those_platforms_only(platforms, text):
    assert lock.marker(platforms) == text
    for platform in lock.PLATFORMS:
        assert bool(pins.read_pins(f"a==1{text}", platform)) == (platform in platforms)


def report(*packages):
    return {"install": [{"metadata": {"name": n, "version": v}} for n, v in packages]}


@pytest.mark.parametrize(
    ("packages", "is_cpu"),
    [
        ([("torch", "2.13.0+cpu"), ("sympy", "1.14.0")], True),
        ([("torch", "2.13.0"), ("sympy", "1.14.0")], True),
        ([("torch", "2.13.0"), ("nvidia-cublas-cu12", "12.8")], False),
        ([("torch", "2.13.0"), ("triton", "3.6")], False),
        ([("torch", "2.13.0"), ("cuda-bindings", "13")], False),
        ([("torch", "2.13.0"), ("nvidia_cudnn_cu13", "9")], False),
        ([("torch", "2.13.0+cu130")], False),
        ([("sympy", "1.14.0")], False),
        ([], False),
    ],
)
def test_which_report_is_a_cpu_build(packages, is_cpu):
    assert torch_source.is_cpu_build(report(*packages)) is is_cpu


def never(*_):
    raise AssertionError("must not be asked")


def test_linux_takes_the_cpu_index_if_it_answers():
    arguments = torch_source.torch_arguments("2.13.0", never, "linux", lambda url: True)
    assert arguments == ["--index-url", torch_source.CPU_INDEX, "--no-deps", "torch==2.13.0"]


def test_linux_without_the_cpu_index_takes_a_cpu_build_elsewhere():
    def dry_run(requirement):
        assert requirement == "torch==2.13.0"
        return report(("torch", "2.13.0+cpu"))

    arguments = torch_source.torch_arguments("2.13.0", dry_run, "linux", lambda url: False)
    assert arguments == ["torch==2.13.0"]


@pytest.mark.parametrize("answer", [None, report(("torch", "2.13.0"), ("triton", "3.6"))])
def test_linux_never_installs_a_gpu_build(answer):
    with pytest.raises(CourseError, match=re.escape(torch_source.CPU_INDEX)):
        torch_source.torch_arguments("2.13.0", lambda _: answer, "linux", lambda url: False)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_take_the_plain_pinned_version(platform):
    assert torch_source.torch_arguments("2.13.0", never, platform, never) == ["torch==2.13.0"]


def test_an_index_that_refuses_does_not_answer():
    assert torch_source.answers("http://127.0.0.1:9/whl/cpu/torch/") is False
