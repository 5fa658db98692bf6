"""The self-check finds what is wrong, says what to type, and is silent about this machine."""

import re
from dataclasses import replace

import pytest

from course_utils import selfcheck
from course_utils.models import catalogue
from course_utils.models.seam import Request
from course_utils.models.source import RecordingMissing, Source

NAME = "qwen2.5-coder-0.5b"


@pytest.fixture(autouse=True)
def empty_home(tmp_path, monkeypatch):
    """No weights anywhere, and the mode of stored outputs."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COURSE_MODEL", "recorded")
    monkeypatch.delenv("COURSE_RECORD_TO", raising=False)
    return tmp_path / "home"


def put_weights(monkeypatch):
    """A file of the right size where the weights belong; the true size would take half a GB."""
    small = replace(catalogue.spec(NAME), bytes=3)
    monkeypatch.setattr(selfcheck.catalogue, "spec", lambda name: small)
    target = catalogue.weights_path(small)
    target.parent.mkdir(parents=True)
    target.write_bytes(b"abc")


def test_what_is_shipped_is_found_well():
    found = {finding.what: finding.ok for finding in selfcheck.findings()}
    assert found["Python"] is found["tokenizer"] is found["recordings"] is True
    assert found[f"weights of {NAME}"] is None


def test_an_old_python_is_named():
    finding = selfcheck.python((3, 9))
    assert finding.ok is False
    assert "3.9" in finding.says and "3.11" in finding.says


@pytest.mark.parametrize("line", ["pytest==0.0.1", "no-such-package-at-all==1.0"])
def test_a_package_that_differs_from_the_lock_is_named(tmp_path, line):
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"{line}\n")
    finding = selfcheck.packages(lock)
    assert finding.ok is False
    assert line in finding.says and "make lab" in finding.says


def test_many_missing_packages_are_counted_not_listed(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text("".join(f"no-such-package-{n}==1\n" for n in range(50)))
    says = selfcheck.packages(lock).says
    assert says.startswith("50 missing") and "no-such-package-7==" not in says


def test_an_installed_set_is_fine(tmp_path):
    import pytest as installed

    lock = tmp_path / "requirements.lock"
    lock.write_text(f"# pins\npytest=={installed.__version__}\n")
    assert selfcheck.packages(lock).ok is True


def test_a_missing_tokenizer_says_how_to_get_it_back():
    finding = selfcheck.token_files("no-such-folder")
    assert finding.ok is False and "git checkout" in finding.says


def test_a_tokenizer_with_other_ids_is_noticed(monkeypatch):
    monkeypatch.setattr(selfcheck, "SAMPLE_IDS", [1, 2])
    assert selfcheck.token_files().ok is False


def test_missing_and_broken_recordings_are_noticed(tmp_path):
    assert "no recorded reply" in selfcheck.recorded(tmp_path).says
    (tmp_path / "01_a.jsonl").write_text("{not json\n")
    finding = selfcheck.recorded(tmp_path)
    assert finding.ok is False and "Line 1 of data/recordings/01_a.jsonl" in finding.says


@pytest.mark.parametrize(("mode", "ok"), [("auto", None), ("recorded", None), ("live", False)])
def test_missing_weights_are_an_error_in_live_mode_only(mode, ok):
    finding = selfcheck.weights(NAME, mode)
    assert finding.ok is ok
    assert f"make fetch MODEL={NAME}" in finding.says


def test_weights_that_are_here_are_seen_except_in_recorded_mode(monkeypatch):
    without = selfcheck.weights(NAME, "recorded")
    put_weights(monkeypatch)
    assert selfcheck.weights(NAME, "auto").ok is True
    assert selfcheck.weights(NAME, "recorded").ok is without.ok


def test_the_stored_table_tells_nothing_of_this_machine(empty_home):
    text = selfcheck.selfcheck().text
    assert str(empty_home) not in text
    assert not re.search(r"(?<![\w.])/\w+/\w+|\b\d\d:\d\d\b", text)


def test_a_model_asked_for_as_recorded_records_nothing(tmp_path, monkeypatch):
    target = tmp_path / "new.jsonl"
    monkeypatch.setenv("COURSE_RECORD_TO", str(target))
    with pytest.raises(RecordingMissing, match="the mode is 'recorded'"):
        Source(catalogue.spec(NAME), "recorded").generate(Request((1, 2, 3)))
    assert not target.exists()
