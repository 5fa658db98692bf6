"""The commands: choosing notebooks, running, normalising, recording, testing."""

import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils.cli import (
    course_map,
    execute,
    html,
    main,
    manual,
    normalise,
    places,
    record,
    report,
    run,
    testing,
    weights,
)
from course_utils.cli.execution import execute_notebook
from course_utils.errors import CourseError

ROOT = places.ROOT
RAISES = {"tags": ["raises-exception"]}
RECORD_ONE = """\
import json, os
path = os.environ.get("COURSE_RECORD_TO")
if path:
    with open(path, "a") as stream:
        stream.write(json.dumps({"key": "b"}) + "\\n" + json.dumps({"key": "a"}) + "\\n")"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A folder of notebooks and recordings of our own, in place of the course's."""
    for name, folder in (
        ("NOTEBOOKS", "notebooks"),
        ("RECORDINGS", "recordings"),
        ("HTML", "html"),
    ):
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(places, name, tmp_path / folder)
    return tmp_path


@pytest.fixture
def write(course):
    """A function that writes notebooks/<name>.ipynb from code sources and cells."""

    def write_notebook(name, *cells):
        made = [new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        path = course / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(new_notebook(cells=made), path)
        return path

    return write_notebook


# Choosing


def test_notebooks_are_chosen_by_number_name_or_path(write, course):
    second, first = write("02_b"), write("01_a")
    folder = course / "notebooks"
    assert places.choose([], folder) == [first, second]
    for name in ("1", "01", "01_a", "01_a.ipynb", str(first)):
        assert places.choose([name], folder) == [first]
    assert places.choose(["2", "01", "2"], folder) == [first, second]


@pytest.mark.parametrize("name", ["7", "x", "", "1.5", "01_other"])
def test_an_unknown_notebook_names_those_there_are(write, course, name):
    write("01_a"), write("02_b")
    with pytest.raises(CourseError, match=r"The notebooks are: 01, 02\."):
        places.choose([name], course / "notebooks")


def test_solutions_belong_to_the_notebook_of_their_number(write, course):
    notebook = write("01_a")
    assert places.solutions_of(notebook) == []
    (course / "notebooks" / "solutions").mkdir()
    solution = write("solutions/01_a")
    write("solutions/02_b")
    assert places.solutions_of(notebook) == [solution]


# Running


def test_run_leaves_the_notebook_alone_and_writes_html(write, course, capsys):
    log = 'import os\nopen(os.environ["COURSE_REPLY_LOG"], "a").write(\'{"origin": "live"}\\n\')'
    folded = new_code_cell("6 * 7", metadata={"jupyter": {"outputs_hidden": True}})
    path = write("01_a", new_markdown_cell("# A"), folded, f"{log};", "'shown'")
    before = path.read_bytes()
    assert run.run([path], {"COURSE_MODEL": "recorded"}) == 0
    assert path.read_bytes() == before
    row = capsys.readouterr().out.splitlines()[2].split()
    assert row[:5] == ["01_a", "3", "0", "1", "0"] and row[-1] == "yes"
    page = (places.HTML / "01_a.html").read_text()
    assert page.count('<details class="course-folded">') == 1
    before_details, inside = page.split('<details class="course-folded">')
    assert "<pre>42</pre>" in inside.split("</details>")[0]
    assert "01_a.html" in (places.HTML / "index.html").read_text()


def test_run_names_notebook_cell_and_error(write, capsys):
    bad = write("01_a", "1", "", "raise ValueError('too\\nlong')", "2")
    good = write("02_b", "1")
    assert run.run([bad, good], {}) == 1
    shown = capsys.readouterr().out
    assert "FAILED 01_a.ipynb, cell [2]: ValueError: too long" in shown
    assert [line.split()[-1] for line in shown.splitlines()[2:4]] == ["NO", "yes"]


@pytest.mark.parametrize("content", [b'{"cells": [', b"[]", b"5", b"{}", b"", b"\xff\xfe\x00"])
def test_a_damaged_notebook_is_one_sentence(write, content):
    path = write("01_a", "1")
    path.write_bytes(content)
    with pytest.raises(CourseError, match="01_a.ipynb is not a readable notebook .*git checkout"):
        execute_notebook(path, {})
    with pytest.raises(CourseError, match="not a readable notebook"):
        weights.models_in(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        ("raise ValueError", None),
        ("1", "cell [1]: tagged raises-exception, but it raised nothing"),
    ],
)
def test_a_tagged_cell_must_raise(write, source, failure):
    path = write("01_a", new_code_cell(source, metadata=RAISES))
    assert execute_notebook(path, {}).failure == failure


def test_the_kernel_is_this_python_in_the_notebooks_folder(write):
    code = "import os, sys, course_utils\nprint(sys.executable, os.getcwd(), os.environ['X'])"
    path = write("01_a", code)
    result = execute_notebook(path, {"X": "7"})
    expected = f"{sys.executable} {path.parent.resolve()} 7\n"
    assert result.notebook.cells[0].outputs[0].text == expected


def test_a_dead_kernel_is_a_failure_of_that_cell(write):
    path = write("01_a", "1", "import os; os._exit(3)")
    assert execute_notebook(path, {}).failure == "cell [2]: the kernel died"


def test_only_pages_with_formulas_load_a_renderer(write):
    plain = execute_notebook(write("01_a", new_markdown_cell("costs $5")), {})
    formula = execute_notebook(write("02_b", new_markdown_cell("so $x^2$ grows")), {})
    loads = re.compile(r"<script[^>]* src=\"https?://[^\"]+")
    assert loads.findall(html.write_page(plain, places.HTML).read_text()) == []
    assert (
        "mathjax" in str(loads.findall(html.write_page(formula, places.HTML).read_text())).lower()
    )


def test_pages_hold_their_figures_and_link_to_each_other(write):
    prose = "![A loop](figures/01-loop.svg) then [next](02_b.ipynb#part)"
    path = write("01_a", new_markdown_cell(prose))
    (path.parent / "figures").mkdir()
    picture = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>'
    (path.parent / "figures" / "01-loop.svg").write_text(picture)
    page = html.write_page(execute_notebook(path, {}), places.HTML).read_text()
    assert 'src="data:image/svg+xml;base64,' in page and 'alt="A loop"' in page
    assert 'href="02_b.html#part"' in page


def test_the_table_lines_up():
    from course_utils.cli.execution import Execution

    results = [Execution(Path("01_a.ipynb"), None), Execution(Path("02_longer.ipynb"), None)]
    lines = report.table(results).splitlines()
    assert len({len(line) for line in lines}) == 1


# Executing in place


def test_execute_normalises_and_then_changes_nothing(write):
    path = write("01_a", "1 + 1", new_code_cell("1 / 0", metadata=RAISES), "print('a')\nprint('b')")
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata["mine"] = 1
    notebook.cells[0].metadata.update({"collapsed": True, "tags": ["long"]})
    nbformat.write(notebook, path)
    assert execute.execute([path], check=True) == 1
    assert execute.execute([path]) == 0
    text = path.read_text()
    stored = nbformat.reads(text, as_version=4)
    assert [cell.execution_count for cell in stored.cells] == [1, 2, 3]
    assert stored.cells[0].metadata == {"tags": ["long"]}
    assert stored.cells[1].outputs[0].traceback == ["ZeroDivisionError: division by zero"]
    assert len(stored.cells[2].outputs) == 1
    assert set(stored.metadata) == {"kernelspec", "language_info"}
    assert execute.execute([path], check=True) == 0
    assert execute.execute([path]) == 0
    assert path.read_text() == text


def test_execute_writes_nothing_if_a_cell_fails(write):
    path = write("01_a", "1", "1 / 0")
    before = path.read_bytes()
    assert execute.execute([path]) == 1
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == [path]


def test_execute_includes_the_solutions(write, course):
    path = write("01_a", "1")
    (course / "notebooks" / "solutions").mkdir()
    solution = write("solutions/01_a", "2")
    assert execute.execute([path]) == 0
    assert nbformat.read(solution, as_version=4).cells[0].execution_count == 1


def test_ids_follow_the_content_not_the_place():
    one, two, same = new_code_cell("a"), new_code_cell("b"), new_code_cell("a")
    first = normalise.cell_ids(new_notebook(cells=[one, two, same]))
    moved = normalise.cell_ids(new_notebook(cells=[two, one, same]))
    assert first[1] == moved[0] and first[0] == moved[1]
    assert first[2] == f"{first[0]}-2"
    assert normalise.cell_ids(new_notebook(cells=[new_markdown_cell("a")])) != first[:1]


def test_a_widget_keeps_its_text_and_loses_its_view():
    data = {normalise.WIDGET_VIEW: {"model_id": "1"}, "text/plain": "IntSlider(value=3)"}
    cell = new_code_cell("slider", outputs=[new_output("display_data", data=data)])
    notebook = new_notebook(cells=[cell], metadata={"widgets": {"x": {}}})
    normalise.normalise(notebook)
    assert notebook.cells[0].outputs[0].data == {"text/plain": "IntSlider(value=3)"}
    assert "widgets" not in notebook.metadata


def test_an_interrupted_write_keeps_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(normalise.os, "replace", no_space)
    with pytest.raises(OSError, match="No space") as caught:
        normalise.write_atomically(target, "new")
    assert caught.value.filename == str(target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


# Recording


def test_record_sorts_and_replaces(write, course):
    path = write("01_a", RECORD_ONE)
    target = course / "recordings" / "01_a.jsonl"
    target.write_text('{"key": "old"}\n')
    assert record.record(path, folder=course / "recordings") == 0
    assert target.read_text() == '{"key": "a"}\n{"key": "b"}\n'


def test_a_failed_recording_changes_nothing(write, course):
    path = write("01_a", RECORD_ONE, "1 / 0")
    target = course / "recordings" / "01_a.jsonl"
    target.write_text('{"key": "old"}\n')
    assert record.record(path, folder=course / "recordings") == 1
    assert target.read_text() == '{"key": "old"}\n'


def test_recordings_that_cannot_be_stored_are_not_asked_for(write, course):
    asked = course / "asked"
    path = write("01_a", f"open({str(asked)!r}, 'w').close()")
    (course / "file").write_text("in the way")
    with pytest.raises(CourseError, match="Nothing was asked"):
        record.record(path, folder=course / "file")
    assert not asked.exists()


@pytest.mark.parametrize(("missing", "shown"), [(True, "live 1 1"), (False, "live 1 ")])
def test_record_tells_the_kernel_its_mode(write, course, capsys, missing, shown):
    names = ("COURSE_MODEL", "COURSE_THREADS", "COURSE_RECORD_REUSE")
    show = f"import os\nraise ValueError(' '.join(os.environ[n] for n in {names}))"
    assert record.record(write("01_a", show), missing, course / "recordings") == 1
    assert f"ValueError: {shown}".strip() in capsys.readouterr().out


def test_of_one_reply_recorded_twice_the_one_with_more_alternatives_is_kept():
    bare, rich = {"key": "a"}, {"key": "a", "alternatives": [[[1, -0.1], [2, -3.0]]]}
    for lines in ([bare, rich], [rich, bare]):
        text = "\n".join(json.dumps(line) for line in lines)
        assert record.merge(text) == [json.dumps(rich)]


def test_a_notebook_that_asks_no_model_has_no_recordings(write, course):
    target = course / "recordings" / "01_a.jsonl"
    target.write_text('{"key": "old"}\n')
    assert record.record(write("01_a", "1"), folder=course / "recordings") == 0
    assert not target.exists()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("model = load()", {"qwen2.5-coder-1.5b"}),
        ("m = load('qwen2.5-coder-0.5b', mode='live')", {"qwen2.5-coder-0.5b"}),
        ('m = load(name="qwen2.5-coder-0.5b")', {"qwen2.5-coder-0.5b"}),
        ("x = 1", set()),
        ("scripted(['a'])", set()),
    ],
)
def test_which_weights_a_notebook_needs(write, source, names):
    assert weights.models_in(write("01_a", source)) == names


# The command line


def test_every_verb_is_in_the_manual_and_has_its_function():
    import importlib

    for verb, target in main.VERBS.items():
        module, function = target.split(":")
        assert callable(getattr(importlib.import_module(module), function))
        arguments = ["01"] if verb == "record" else []
        assert manual.parser().parse_args([verb, *arguments]).verb == verb
    makefile = (ROOT / "Makefile").read_text()
    for verb in main.VERBS:
        assert f"\n{verb}:\n\t@$(PYTHON) -m course_utils {verb}" in makefile


def test_delegated_verbs_keep_their_options():
    assert manual.parser().parse_args(["fetch", "--help"]).rest == ["--help"]
    assert manual.parser().parse_args(["verify", "01", "--x"]).rest == ["01", "--x"]


def call(*arguments, **variables):
    command = [sys.executable, "-m", "course_utils", *arguments]
    env = os.environ | {"COURSE_ENV": "current", "PYTHONPATH": str(ROOT)} | variables
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


def test_help_reads_as_a_manual_page():
    done = call("--help")
    assert done.returncode == 0
    for part in ("NAME", "SYNOPSIS", "MODES", "ENVIRONMENT", "EXAMPLES", "EXIT STATUS"):
        assert part in done.stdout
    for variable in ("COURSE_MODEL", "COURSE_HOME", "COURSE_THREADS"):
        assert variable in done.stdout


@pytest.mark.parametrize("arguments", [(), ("fly",), ("record",), ("run", "--fast")])
def test_a_wrong_command_line_gives_status_2(arguments):
    done = call(*arguments)
    assert done.returncode == 2
    assert done.stderr.endswith("Try: python -m course_utils --help\n")


@pytest.mark.parametrize("verb", ["run", "test", "live", "execute", "record", "lock"])
def test_help_of_a_verb_shows_what_to_type(verb, capsys):
    with pytest.raises(SystemExit, match="0"):
        manual.parser().parse_args([verb, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: python -m course_utils {verb} ")


@pytest.mark.parametrize("reason", ["No space left on device", "Permission denied"])
def test_a_disk_that_refuses_is_one_sentence(write, monkeypatch, capsys, reason):
    write("01_a", "1")

    def refuse(*_):
        raise OSError(28, reason, "build/html")

    monkeypatch.setenv("COURSE_ENV", "current")
    monkeypatch.setattr(html, "write_page", refuse)
    assert main.main(["run"]) == 1
    said = capsys.readouterr().err
    assert f"run: A file or folder cannot be used (build/html: {reason})" in said
    assert "Traceback" not in said


def test_a_closed_pipe_is_not_taken_for_a_refusing_disk(write, monkeypatch):
    def leave(*_):
        raise BrokenPipeError

    write("01_a", "1")
    monkeypatch.setenv("COURSE_ENV", "current")
    monkeypatch.setattr(html, "write_page", leave)
    with pytest.raises(BrokenPipeError):
        main.main(["run"])


def test_an_expected_failure_is_one_sentence():
    done = call("run", "98")
    assert done.returncode == 1
    assert done.stderr.startswith("run: There is no notebook")
    assert "Traceback" not in done.stderr


def test_a_mistyped_mode_is_said_before_anything_runs(write):
    done = call("run", COURSE_MODEL="recoded")
    assert done.returncode == 1
    assert "'recoded'" in done.stderr and "Traceback" not in done.stderr


def test_an_old_python_gets_a_sentence(tmp_path):
    code = (
        "import runpy, sys; sys.version_info = (3, 9, 1); "
        "runpy.run_module('course_utils', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("This course needs Python 3.11 or newer; this is Python 3.9.")


def test_the_entry_needs_the_standard_library_alone():
    code = "import course_utils.cli.main, course_utils.cli.environment, course_utils.cli.manual"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.'); {code}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Testing


def barred(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=testing.test_environment(),
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request; urllib.request.urlopen('http://example.org')",
        "import socket; socket.create_connection(('192.0.2.1', 80), 2)",
        "import socket; socket.gethostbyname('example.org')",
        "import socket; socket.socket().connect_ex(('192.0.2.1', 80))",
        "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "import httpx; httpx.get('http://192.0.2.1')",
    ],
)
def test_the_network_is_barred(code):
    done = barred(code)
    assert done.returncode == 1
    assert "The network is barred in tests" in done.stderr


def test_this_machine_itself_is_not_barred():
    done = barred(
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(('localhost', s.getsockname()[1])).close()"
    )
    assert done.returncode == 0, done.stderr


def test_test_runs_on_recorded_replies(monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", "live")
    monkeypatch.setenv("COURSE_RECORD_TO", "somewhere")
    variables = testing.test_environment()
    assert variables["COURSE_MODEL"] == "recorded"
    assert variables["PYTHONHASHSEED"] == "0"
    assert "COURSE_RECORD_TO" not in variables


def test_all_parts_run_and_one_failure_fails_the_test(monkeypatch, capfd):
    good, bad = [sys.executable, "-c", ""], [sys.executable, "-c", "raise SystemExit(5)"]
    monkeypatch.setattr(testing, "parts", lambda _: [("one", bad), ("two", good)])
    assert testing.test_verb(Namespace(notebooks=[])) == 1
    shown = capfd.readouterr().out
    assert "FAILED  one" in shown and "passed  two" in shown
    monkeypatch.setattr(testing, "parts", lambda _: [("two", good)])
    assert testing.test_verb(Namespace(notebooks=[])) == 0


def test_a_notebook_with_other_outputs_fails(write):
    path = write("01_a", "1 + 1")
    execute.execute([path])
    (name, command) = testing.parts([path])[-1]
    assert name == "notebooks"
    env = testing.test_environment()
    assert subprocess.run(command, cwd=path.parent, env=env).returncode == 0
    path.write_text(path.read_text().replace('"2"', '"3"'))
    assert subprocess.run(command, cwd=path.parent, env=env).returncode == 1


# The course map


def test_the_course_map_in_the_readme_is_up_to_date():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    wanted = course_map.course_map(sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")))
    assert course_map.with_map(readme, wanted) == readme, "run: make execute"


def test_the_course_map_has_title_minutes_and_links(write, course):
    (course / "notebooks" / "solutions").mkdir()
    first = write("01_a", new_markdown_cell("# 01 · One | two\n\nAbout **25 minutes**."))
    second = write("02_b", "1")
    write("solutions/01_a")
    assert course_map.course_map([first, second]).splitlines()[2:] == [
        "| 01 | [One \\| two](notebooks/01_a.ipynb) | 25 "
        "| [solutions](notebooks/solutions/01_a.ipynb) |",
        "| 02 | [02_b](notebooks/02_b.ipynb) |  |  |",
    ]


def test_only_the_part_between_the_marks_is_replaced():
    text = f"before\n{course_map.BEGIN}\nold\n{course_map.END}\nafter\n"
    changed = course_map.with_map(text, "new")
    assert changed == f"before\n{course_map.BEGIN}\nnew\n{course_map.END}\nafter\n"


@pytest.mark.parametrize("lost", [course_map.BEGIN, course_map.END])
def test_a_readme_without_a_mark_of_the_map_is_left_alone(tmp_path, monkeypatch, lost):
    monkeypatch.setattr(course_map, "course_map", lambda notebooks: "new")
    readme = tmp_path / "README.md"
    text = f"before\n{course_map.BEGIN}\nold\n{course_map.END}\nafter\n".replace(lost, "")
    readme.write_text(text)
    with pytest.raises(CourseError, match="README.md was not written"):
        course_map.update_readme(readme)
    assert readme.read_text() == text
