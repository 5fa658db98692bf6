"""Set-up on a bare clone: what is used, when .venv is built, and what is said if it cannot be."""

import subprocess
import sys
from argparse import Namespace

import pytest

from course_utils.cli import environment, install
from course_utils.cli.places import ROOT
from course_utils.errors import CourseError


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A bare clone in which building and restarting are written down instead of done."""
    (tmp_path / "requirements.lock").write_text("no-such-package==1\n")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "LOCK", tmp_path / "requirements.lock")
    monkeypatch.delenv("COURSE_ENV", raising=False)
    done = []

    def build(venv, lock, stamp):
        done.append("build")
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        (venv / install.MARK).touch()
        install.python_of(venv).touch()
        (venv / install.STAMP).write_text(stamp)

    monkeypatch.setattr(install, "build", build)
    monkeypatch.setattr(environment, "restart", lambda python, argv: done.append(str(python)))
    return Namespace(folder=tmp_path, done=done, python=str(tmp_path / ".venv/bin/python"))


def test_a_bare_clone_builds_once_and_restarts(bare):
    environment.ensure(["run"])
    environment.ensure(["run"])
    assert bare.done == ["build", bare.python, bare.python]


@pytest.mark.parametrize("what", ["lock", "interrupted", "python gone"])
def test_what_makes_a_new_set_up_necessary(bare, what):
    environment.ensure(["run"])
    if what == "lock":
        (bare.folder / "requirements.lock").write_text("no-such-package==2\n")
    elif what == "interrupted":
        (bare.folder / ".venv" / install.STAMP).unlink()
    else:
        install.python_of(bare.folder / ".venv").unlink()
    environment.ensure(["run"])
    assert bare.done.count("build") == 2


def test_an_environment_that_has_all_packages_is_used(bare, monkeypatch):
    (bare.folder / "requirements.lock").write_text("")
    monkeypatch.setattr(environment, "is_isolated", lambda: True)
    environment.ensure(["run"])
    assert bare.done == []


def test_a_python_outside_any_environment_is_left_alone(bare, monkeypatch):
    (bare.folder / "requirements.lock").write_text("")
    monkeypatch.setattr(environment, "is_isolated", lambda: False)
    environment.ensure(["run"])
    assert bare.done == ["build", bare.python]


def test_conda_counts_as_an_environment_only_if_it_is_this_python(monkeypatch, tmp_path):
    monkeypatch.setattr(environment.sys, "base_prefix", sys.prefix)
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path))
    assert not environment.is_isolated()
    monkeypatch.setenv("CONDA_PREFIX", sys.prefix)
    assert environment.is_isolated()


def test_a_mistyped_setting_is_named(bare, monkeypatch):
    monkeypatch.setenv("COURSE_ENV", "curent")
    with pytest.raises(CourseError, match="'curent'"):
        environment.ensure(["run"])


def test_a_foreign_folder_is_not_replaced(tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "mine.txt").write_text("keep")
    with pytest.raises(CourseError, match="did not make"):
        install.check_possible(tmp_path / ".venv")
    assert (tmp_path / ".venv" / "mine.txt").read_text() == "keep"


def test_no_rights_no_space_no_venv_module_are_said_before_anything_is_made(tmp_path, monkeypatch):
    venv = tmp_path / ".venv"
    with monkeypatch.context() as patch:
        patch.setattr(install.os, "access", lambda *_: False)
        with pytest.raises(CourseError, match="No permission to write"):
            install.check_possible(venv)
    with monkeypatch.context() as patch:
        patch.setattr(install.shutil, "disk_usage", lambda _: Namespace(free=5_000_000))
        with pytest.raises(CourseError, match="5 MB are free"):
            install.check_possible(venv)
    with monkeypatch.context() as patch:
        patch.setattr(install.importlib.util, "find_spec", lambda _: None)
        with pytest.raises(CourseError, match="python3-venv"):
            install.check_possible(venv)
    assert not venv.exists()


def test_a_failed_command_shows_its_last_lines():
    code = "for i in range(30): print('line', i)\nraise SystemExit(3)"
    with pytest.raises(CourseError, match="pip failed; its last lines were") as caught:
        install.run_quietly([sys.executable, "-c", code], "pip")
    assert "line 29" in str(caught.value) and "line 17" not in str(caught.value)


def test_a_failed_set_up_leaves_no_stamp(tmp_path, monkeypatch):
    (tmp_path / "requirements.lock").write_text("no-such-package==1\n")
    calls = []

    def fail_at_pip(command, what, total=0):
        calls.append(what)
        if what == "pip":
            raise CourseError("pip failed")

    monkeypatch.setattr(install, "run_quietly", fail_at_pip)
    with pytest.raises(CourseError, match="pip failed"):
        install.build(tmp_path / ".venv", tmp_path / "requirements.lock", "stamp")
    assert calls == ["python -m venv", "pip"]
    assert not (tmp_path / ".venv" / install.STAMP).exists()


def test_two_set_ups_do_not_overlap(tmp_path):
    code = (
        "import sys, pathlib, time\n"
        "from course_utils.cli.install import only_one\n"
        "with only_one(pathlib.Path(sys.argv[1]) / 'lock'):\n"
        "    out = pathlib.Path(sys.argv[1]) / 'log'\n"
        "    for word in ('in', 'out'):\n"
        "        out.open('a').write(word + ' ')\n"
        "        time.sleep(0.2)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "in out in out in out "
