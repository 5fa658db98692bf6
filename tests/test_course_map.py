"""The course map and the glossary tell what stands in the notebooks, and nothing else."""

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.cli import places
from course_utils.course_map import WHOLE, course_map, entries, glossary, plain, terms

OPENER = (
    "# 01 · Raw calls\n\nAfter this notebook you can **write** a call, and **read** one.\n\n"
    "About **40 minutes**. You need notebook 00."
)


@pytest.fixture
def folder(tmp_path, make_notebook):
    """A function that writes notebooks, given as name=cells, into a folder of their own."""

    def write(**notebooks):
        for name, cells in notebooks.items():
            path = tmp_path / f"{name.removeprefix('n')}.ipynb"
            nbformat.write(make_notebook(*cells), path)
        return tmp_path

    return write


def test_an_entry_holds_title_minutes_part_and_promise(folder):
    (entry,) = entries(folder(n01_raw=[OPENER, "# Later\n\nAfter it you can fly. 5 minutes."]))
    assert (entry.number, entry.title, entry.minutes) == ("01", "Raw calls", 40)
    assert entry.part == "tool use"
    assert entry.learn == "write a call, and read one"


@pytest.mark.parametrize(
    ("opener", "promise"),
    [
        ("# A\n\nYou will be able to:\n\n- **build** it;\n- test it.\n", "build it; test it"),
        ("# A\n\nAt the end you will be able to `run` it. Bring tea.", "run it"),
        ("# A\n\nAfter it you can count to 2.5\nand more.", "count to 2.5 and more"),
        ("# A\n\nNothing is promised.", ""),
    ],
)
def test_openers_may_promise_in_a_sentence_or_in_points(folder, opener, promise):
    assert entries(folder(n01_raw=[opener]))[0].learn == promise


def test_only_notebooks_that_exist_are_listed_in_reading_order(folder):
    where = folder(n42_new=["# 42 · New"], n01_raw=[OPENER], nscratch=["# Scratch"])
    assert [entry.number for entry in entries(where)] == ["01", "42"]
    assert entries(where)[1].part == WHOLE
    assert entries(where)[1].minutes is None


def test_the_map_links_to_the_notebooks_and_says_the_same_as_text(folder):
    view = course_map(folder(n01_raw=[OPENER], n02_b=["# 02 · Bold <b>& co</b>"]))
    assert '<a href="01_raw.ipynb">01</a>' in view.html
    assert "<b>" not in view.html and "Bold &lt;b&gt;&amp; co" in view.html
    for word in ("Raw calls", "40", "tool use", "write a call, and read one"):
        assert word in view.text and word in view.html


def test_terms_are_sorted_and_the_first_definition_counts(folder):
    found = terms(
        folder(
            n01_raw=[OPENER, "Text.\n\n> **Tool.** A function.\n\nMore.\n\n> **Call.** A\n> text."],
            n02_b=["> **tool.** Something else.", "> A quotation, **not.** A term."],
        )
    )
    assert [(t.name, t.text, t.notebook) for t in found] == [
        ("Call", "A text.", "01"),
        ("Tool", "A function.", "01"),
    ]


def test_two_boxes_in_a_row_are_two_terms(folder):
    found = terms(folder(n01_raw=["> **A.** One.\n\n> **B.** Two."]))
    assert [(t.name, t.text) for t in found] == [("A", "One."), ("B", "Two.")]


def test_code_cells_define_no_terms(folder):
    assert terms(folder(n01_raw=[("'''\n> **Tool.** A function.\n'''",)])) == []


@given(st.text())
def test_plain_text_is_one_line_and_stays_plain(text):
    once = plain(text)
    assert "\n" not in once and "`" not in once
    assert plain(once) == once or "](" in once


def test_the_course_itself_has_a_complete_map():
    for entry in entries():
        assert entry.title and entry.minutes and entry.learn, entry.number
    defined = [term.name for term in terms()]
    assert {"Agent", "Token", "Language model"} <= set(defined)
    assert all(term.text.endswith(".") for term in terms())
    assert "Agent" in glossary().text


def test_the_agent_figure_is_there_and_says_what_it_shows():
    svg = (places.NOTEBOOKS / "figures" / "00-agent.svg").read_text(encoding="utf-8")
    assert 'role="img"' in svg and "<title" in svg
    for part in ("Model", "Memory", "Planning", "Tool use"):
        assert f">{part}</text>" in svg
