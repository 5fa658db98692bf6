"""How the sandbox gets onto a machine, and what is said where it cannot."""

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from course_utils.cli import install, pins, sandbox
from course_utils.cli.places import ROOT
from course_utils.errors import CourseError
from course_utils.sandbox import Execution, HostCall, Sandbox, deno, fetch, variants
from course_utils.sandbox.variants import INSIDE

HAVE_DENO = deno.program() is not None


def test_pyodide_is_pinned_with_its_checksum():
    lock = json.loads((INSIDE / "deno.lock").read_text())
    assert lock["specifiers"] == {f"npm:pyodide@{deno.PYODIDE}": deno.PYODIDE}
    assert f'"npm:pyodide@{deno.PYODIDE}"' in (INSIDE / "pyodide.mjs").read_text()
    assert all(each["integrity"].startswith("sha512-") for each in lock["npm"].values())


@pytest.mark.skipif(not HAVE_DENO, reason="the package deno is not installed")
def test_without_npm_the_reason_is_given_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(deno, "folder", lambda: tmp_path / "share" / "pyodide")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    with pytest.raises(CourseError, match="could not be fetched from npm: .*refused"):
        fetch.fetch()
    assert list((tmp_path / "share").iterdir()) == []


@pytest.mark.skipif(not HAVE_DENO, reason="the package deno is not installed")
def test_a_snapshot_that_cannot_be_made_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(deno, "folder", lambda: tmp_path / "share" / "pyodide")

    def download(cache):
        cache.mkdir()
        for name in deno.FILES:
            (cache / name).write_text("not it")
        return cache

    monkeypatch.setattr(fetch, "download", download)
    with pytest.raises(CourseError, match="was fetched but does not start"):
        fetch.fetch()
    assert not deno.folder().exists()


def test_a_folder_without_rights_is_named(tmp_path, monkeypatch):
    (tmp_path / "share").write_text("a file where a folder has to be")
    monkeypatch.setattr(deno, "folder", lambda: tmp_path / "share" / "pyodide")
    monkeypatch.setattr(deno, "program", lambda: "deno")
    with pytest.raises(CourseError, match=f"cannot be written to {tmp_path}"):
        fetch.fetch()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("error: Failed\n    0: no route (os error 1)\n    1: timed out\n\nStack", "timed out"),
        ("Download x\nerror: Integrity check failed\n", "Integrity check failed"),
        ("", "Deno gave no reason"),
    ],
)
def test_the_innermost_reason_is_given(text, reason):
    assert fetch.reason_in(text) == reason


def test_set_up_goes_on_without_the_sandbox_and_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "requirements.lock").write_text("no-such-package==1\n")

    def run_quietly(command, what, total=0):
        if what == "fetching":
            raise CourseError("fetching failed:\n  course_utils.errors.CourseError: no route")

    monkeypatch.setattr(install, "run_quietly", run_quietly)
    install.build(tmp_path / ".venv", tmp_path / "requirements.lock", "stamp")
    assert (tmp_path / ".venv" / install.STAMP).read_text() == "stamp"
    said = capsys.readouterr().err
    assert (
        "Code agents will refuse until you type: python -m course_utils sandbox (no route)" in said
    )


def test_set_up_fetches_with_the_new_environment_s_python(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(
        install, "run_quietly", lambda command, what, total=0: commands.append(command)
    )
    install.add_sandbox(tmp_path)
    assert commands[0][0] == str(install.python_of(tmp_path))
    compile(commands[0][-1], "command", "exec")
    assert "fetch" in commands[0][-1]


@pytest.mark.skipif(deno.problem() is not None, reason=f"deno: {deno.problem()}")
def test_the_verb_tries_what_is_installed(capsys):
    assert sandbox.sandbox_verb(Namespace()) == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "Pyodide is installed already.",
        "The sandbox works: a program ran in it and called a function out here.",
    ]


def test_the_verb_replaces_what_does_not_start(monkeypatch, capsys):
    damaged = [True]

    def fetch_it(again=False):
        if again:
            damaged.clear()
        return again

    def try_it():
        if damaged:
            raise CourseError("The sandbox did not start")
        call = HostCall("double", {"number": 6}, 12, True)
        return Execution("", 12, "", None, False, (call,))

    monkeypatch.setattr(sandbox, "fetch", fetch_it)
    monkeypatch.setattr(sandbox, "try_it", try_it)
    monkeypatch.setattr(deno, "program", lambda: "deno")
    assert sandbox.sandbox_verb(Namespace()) == 0
    assert "does not start, so it is fetched again" in capsys.readouterr().out


@pytest.mark.skipif(deno.problem() is not None, reason=f"deno: {deno.problem()}")
@pytest.mark.parametrize("name", ["python.snapshot", "pyodide.asm.wasm", "pyodide.asm.mjs"])
def test_half_a_file_is_told_with_what_to_type(tmp_path, monkeypatch, name):
    folder = tmp_path / "with space" / "pyodide"
    folder.mkdir(parents=True)
    for each in (*deno.FILES, deno.SNAPSHOT):
        os.symlink(deno.folder() / each, folder / each)
    half = (folder / name).read_bytes()
    (folder / name).unlink()
    (folder / name).write_bytes(half[: len(half) // 2])
    monkeypatch.setattr(deno, "folder", lambda: folder)
    with pytest.raises(CourseError, match=r"did not start: .*type: python -m course_utils sandb"):
        Sandbox(variant="deno").run("1")


def test_a_comma_in_the_path_is_told(monkeypatch):
    monkeypatch.setattr(deno, "folder", lambda: Path("/home/Doe, John/pyodide"))
    monkeypatch.setattr(deno, "program", lambda: "deno")
    assert "comma" in deno.problem()
    with pytest.raises(CourseError, match="without commas"):
        fetch.fetch()


HOSTILE = {
    "PYTHONPATH": "{folder}",
    "PYTHONSTARTUP": "{folder}/json.py",
    "PYTHONINSPECT": "1",
    "DENO_V8_FLAGS": "--no-such-flag",
    "DENO_DIR": "{folder}/none",
    "NODE_OPTIONS": "--require {folder}/x.js",
}


@pytest.mark.parametrize("variant", variants.NAMES)
def test_the_user_s_folder_and_variables_change_nothing(tmp_path, variant):
    if (problem := variants.problem_of(variant)) is not None:
        pytest.skip(f"{variant}: {problem}")
    for name in ("json.py", "ast.py", "deno.json", "package.json", ".npmrc", "worker.mjs"):
        (tmp_path / name).write_text("raise SystemExit('hostile')")
    script = (
        "import os, shutil\nfrom course_utils.sandbox import Sandbox\n"
        f"os.environ.update({ {k: v.format(folder=tmp_path) for k, v in HOSTILE.items()}!r})\n"
        f"os.chdir({str(tmp_path)!r})\nsandbox = Sandbox(imports=['os'], variant={variant!r})\n"
        "print(sandbox.run('import os; [6 * 7, len([k for k in os.environ if \"DENO\" in k])]'))\n"
        f"shutil.rmtree({str(tmp_path)!r})\nsandbox.close()\nprint(sandbox.run('6 * 8'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("output: [42, 0]\noutput: 48\n", "")


def test_the_verb_installs_the_pinned_deno(monkeypatch):
    commands = []

    def run(command, **_):
        commands.append(command)
        return Namespace(returncode=1)

    monkeypatch.setattr(deno, "program", lambda: None)
    monkeypatch.setattr(sandbox.subprocess, "run", run)
    with pytest.raises(CourseError, match="pip could not install deno"):
        sandbox.sandbox_verb(Namespace())
    version = pins.read_pins((ROOT / "requirements.lock").read_text())["deno"]
    assert commands[0][-1] == f"deno=={version}"


@pytest.mark.skipif(deno.problem() is not None, reason=f"deno: {deno.problem()}")
def test_deno_is_started_without_permissions_and_without_our_environment(monkeypatch):
    monkeypatch.setenv("COURSE_TEST_SECRET", "secret")
    command = deno.command(256)
    allowed = [each for each in command.arguments if each.startswith("--allow")]
    assert allowed == [f"--allow-read={deno.folder()}"]
    assert "--cached-only" in command.arguments and "--no-prompt" in command.arguments
    assert set(command.environment) <= {
        "DENO_DIR",
        "NO_COLOR",
        "DENO_NO_UPDATE_CHECK",
        "SYSTEMROOT",
    }
    assert Path(command.arguments[-1]).parent == INSIDE and os.path.isfile(command.arguments[-1])
