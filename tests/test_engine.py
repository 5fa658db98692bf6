"""The engine's settings and failures; its replies are tested in tests/live with real weights."""

import dataclasses

import pytest

from course_utils.errors import CourseError
from course_utils.models import catalogue
from course_utils.models.engine import Engine, threads

SPEC = catalogue.spec("qwen2.5-coder-0.5b")


def test_threads_follow_the_setting(monkeypatch):
    monkeypatch.setenv("COURSE_THREADS", "3")
    assert threads() == 3
    monkeypatch.delenv("COURSE_THREADS")
    assert 1 <= threads() <= 4


@pytest.mark.parametrize("setting", ["0", "two", "-1", "1.5"])
def test_a_wrong_thread_setting_is_named(monkeypatch, setting):
    monkeypatch.setenv("COURSE_THREADS", setting)
    with pytest.raises(CourseError, match=f"COURSE_THREADS.*not '{setting}'"):
        threads()


def test_a_file_that_is_no_model_gives_one_sentence_and_leaves_no_process(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "broken.gguf").write_bytes(b"not a model" * 100)
    with pytest.raises(CourseError, match=r"could not load broken\.gguf.*fetch qwen2\.5-coder-0"):
        Engine(dataclasses.replace(SPEC, file="broken.gguf"))
    assert capfd.readouterr() == ("", "")
