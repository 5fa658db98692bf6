"""Every notebook keeps the rules, and every rule finds what it is there to find."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course_utils.cli import lint, places

SOLUTIONS = sorted((places.NOTEBOOKS / "solutions").glob("*.ipynb"))


@pytest.mark.parametrize("path", places.all_notebooks(), ids=lambda path: path.stem)
def test_notebook_keeps_the_rules(path):
    assert lint.lint(nbformat.read(path, as_version=4)) == []


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solutions_keep_the_rules(path):
    assert lint.lint(nbformat.read(path, as_version=4), solutions=True) == []


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def shown(**data):
    return new_output("display_data", data={k.replace("__", "/"): v for k, v in data.items()})


def svg(markup):
    return new_output("display_data", data={"image/svg+xml": markup})


ERROR = new_output("error", ename="E", evalue="no", traceback=["E: no"])
RAISES = {"tags": ["raises-exception"]}
LONG = {"tags": ["long"]}
FOLDED = {"jupyter": {"outputs_hidden": True}}


def folded(*outputs):
    return new_code_cell("x", metadata=FOLDED, outputs=list(outputs))


GOOD = [
    ("# Title\n\nSome prose with a [link](https://example.org/a/b) and `code`.",),
    (("1 + 1", stream("2\n")),),
    ("![What trimming kept: the last two turns](figures/01-a.svg)",),
    ('<img src="a.png" alt="A loop of four steps">',),
    (("x", svg('<svg role="img" aria-label="Tokens grow"><path/></svg>')),),
    (("x", svg('<svg role="img"><title>Tokens grow</title></svg>')),),
    (("x", svg('<svg aria-hidden="true"><path/></svg>')),),
    (("clock", stream("2026-08-10 09:00:00\n")),),
    (("x", stream("an https://example.org/home/page address, 0x1F, half/tmp/x\n")),),
    (new_code_cell("raise E", metadata=RAISES, outputs=[ERROR]),),
    (new_code_cell("\n".join(["x = 1"] * 25), metadata=LONG),),
    (new_markdown_cell("word " * 200, metadata=LONG),),
    ("| a | b |\n|---|---|\n" + "| word word word word | word |\n" * 40,),
    ("```\n" + "word " * 200 + "\n```",),
    (("a",), ("b",), "prose", ("c",)),
    (("text = 'never call input() or from x import *'",),),
    (("x", shown(text__html="<p>all</p>", text__plain="line\n" * 40)),),
    (folded(stream("Guess first, then open this output.\n42\n")),),
    (folded(),),
]


@pytest.mark.parametrize("cells", GOOD)
def test_good_samples_pass(make_notebook, cells):
    assert lint.lint(make_notebook(*cells)) == []


BAD = [
    (lint.no_empty_cells, ("  ",)),
    (lint.alt_texts, ("![](figures/01-a.svg)",)),
    (lint.alt_texts, ('<img src="a.png">',)),
    (lint.alt_texts, ('<img src="a.png" alt="">',)),
    (lint.alt_texts, ("<svg><path/></svg>",)),
    (lint.alt_texts, ('<svg role="img"><path/></svg>',)),
    (lint.alt_texts, (("x", svg('<svg aria-label="no role"></svg>')),)),
    (lint.alt_texts, (("x", shown(image__png="aGk=")),)),
    (lint.alt_texts, (("x", shown(text__html="<p><img src='a.png'></p>")),)),
    (lint.no_machine_text, (("x", stream("<Tool object at 0x7f00deadbeef>")),)),
    (lint.no_machine_text, (("x", shown(text__plain="0x7f00deadbeef")),)),
    (lint.no_machine_text, (("x", shown(text__plain="<course.Tool object>")),)),
    (lint.no_machine_text, (("x", shown(text__html="<b>'/home/ann/x.py'</b>")),)),
    (lint.no_machine_text, (("x", stream("C:\\Users\\ann")),)),
    (lint.no_machine_text, (("x", stream("at 10:11:12")),)),
    (lint.no_machine_text, (("x", stream("2026-08-10 10:11:12.345")),)),
    (lint.no_machine_text, (("x", stream("Wall time: 3 ms")),)),
    (lint.errors_are_tagged, (("raise E", ERROR),)),
    (lint.errors_are_tagged, (new_code_cell("x", metadata=RAISES),)),
    (lint.nothing_on_stderr, (("x", stream("warning\n", "stderr")),)),
    (lint.short_code, (("\n".join(["x = 1"] * 16),),)),
    (lint.short_code, (new_code_cell("\n".join(["x = 1"] * 26), metadata=LONG),)),
    (lint.short_prose, ("word " * 81,)),
    (lint.prose_between_code, (("a",), ("b",), ("c",))),
    (lint.forbidden_code, (("from math import *",),)),
    (lint.forbidden_code, (("!pip install x",),)),
    (lint.forbidden_code, (("x = 1\n%pip install x",),)),
    (lint.forbidden_code, (("name = input('Name?')",),)),
    (lint.folded_answers, (folded(stream("42\n")),)),
    (lint.slide_types, (new_markdown_cell("x", metadata={"slideshow": {"slide_type": "big"}}),)),
    (lint.short_outputs, (("x", stream("line\n" * 21)),)),
    (lint.short_outputs, (("x", stream("line\n" * 11), shown(text__plain="line\n" * 11)),)),
]


@pytest.mark.parametrize(("rule", "cells"), BAD)
def test_bad_samples_are_found_by_their_rule(make_notebook, rule, cells):
    complaints = list(rule(make_notebook(*cells)))
    assert len(complaints) >= 1
    assert rule in lint.RULES


def change(notebook, what):
    cell = notebook.cells[-1]
    match what:
        case "count":
            cell.execution_count = 7
        case "no count":
            cell.execution_count = None
        case "same id":
            cell["id"] = notebook.cells[0]["id"]
        case "bad id":
            cell["id"] = "two words"
        case "metadata":
            cell.metadata["collapsed"] = False
        case "kernel":
            notebook.metadata["kernelspec"]["display_name"] = "my kernel"
        case "widgets":
            notebook.metadata["widgets"] = {"application/x": {"version_major": 2}}
        case "traceback":
            cell.outputs[0].traceback = ["many", "lines"]


@pytest.mark.parametrize(
    ("what", "rule"),
    [
        ("count", lint.execution_counts),
        ("no count", lint.execution_counts),
        ("same id", lint.valid_ids),
        ("bad id", lint.valid_ids),
        ("metadata", lint.stored_form),
        ("kernel", lint.stored_form),
        ("traceback", lint.stored_form),
        ("widgets", lint.widget_state),
    ],
)
def test_a_changed_notebook_is_found(make_notebook, what, rule):
    notebook = make_notebook("prose", new_code_cell("x", metadata=RAISES, outputs=[ERROR]))
    assert lint.lint(notebook) == []
    change(notebook, what)
    assert list(rule(notebook)) != []


def test_every_rule_has_a_bad_sample():
    changed = {
        lint.execution_counts,
        lint.valid_ids,
        lint.stored_form,
        lint.widget_state,
    }
    assert {rule for rule, _ in BAD} | changed == set(lint.RULES)
