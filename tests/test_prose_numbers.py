"""Numbers in prose stand in an output of their notebook, are cited, or are justified by name."""

import tomllib

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_output

from course_utils.cli import places
from course_utils.cli.numbers import claims, unsupported

FILE = places.ROOT / "tests" / "prose_numbers.toml"
JUSTIFIED = tomllib.loads(FILE.read_text(encoding="utf-8"))["justified"]


def listed(path):
    return unsupported(nbformat.read(path, as_version=4))


@pytest.mark.parametrize("path", places.all_notebooks(), ids=lambda path: path.stem)
def test_every_number_in_prose_is_shown_or_justified(path):
    known = {entry["number"] for entry in JUSTIFIED if entry["notebook"] == path.name[:2]}
    assert [str(claim) for claim in listed(path) if claim.number not in known] == []


@pytest.mark.parametrize("entry", JUSTIFIED, ids=lambda e: f"{e['notebook']}-{e['number']}")
def test_every_justification_is_needed_and_gives_a_reason(entry):
    numbers = {claim.number for claim in listed(places.choose([entry["notebook"]])[0])}
    assert entry["number"] in numbers
    assert len(entry["reason"].split()) >= 3


def shown(text="", **data):
    data = {kind.replace("__", "/"): content for kind, content in data.items()}
    return new_output("display_data", data=data) if data else new_output("stream", text=text)


def numbers_listed(make_notebook, prose, output="", code="run()"):
    notebook = make_notebook(prose, (code, shown(output)))
    return [claim.number for claim in unsupported(notebook)]


@pytest.mark.parametrize(
    ("prose", "output"),
    [
        ("The prompt has 58 tokens.", "58 tokens in"),
        ("**58** tokens, (58), *58*, «58», 58: so many.", "[58]"),
        ("It grows to 14,187.", "14187"),
        ("It grows to 14187.", "14,187 tokens"),
        ("It grows to 14\u202f187.", "14,187 tokens"),
        ("About 14,000 in all.", "14187"),
        ("about **60** a step", "64"),
        ("The right share is 53 %.", "0.53"),
        ("The right share is 53%.", "0.5312"),
        ("6 percent", "0.0571"),
        ("The right share is 0.53.", "53 %"),
        ("It is 4.3 behind, at −0.6.", "4.34 -0.63"),
        ("It is 0.6 below.", "−0.6"),
        ("At -4 degrees", '{"temp_c": -4}'),
        ("2 degrees or 31?", "2°C, 31C"),
        ("From 10 to 12, that is 10–12.", "10 12"),
        ("1.5 billion parameters", "[recorded · qwen2.5-coder-1.5b]"),
        ("On 2023-10-01 at 09:30.", "2023-10-01T09:30:00"),
    ],
)
def test_a_number_in_an_output_is_supported(make_notebook, prose, output):
    assert numbers_listed(make_notebook, prose, output) == []


@pytest.mark.parametrize(
    ("prose", "output", "expected"),
    [
        ("The prompt has 58 tokens.", "59 tokens", ["58"]),
        ("The prompt has 58 tokens.", "", ["58"]),
        ("58 tokens", "158 580 5.8 58.7 a58 INV-58 058", ["58"]),
        ("14,187 and 14,000", "14,187", ["14,000"]),  # rounded, but not said to be
        ("about 15,000", "14187", ["15,000"]),
        ("53 tokens", "0.53", ["53"]),  # no share
        ("1 of the 0", "0.53", ["1", "0"]),
        ("4.4 and 4.345", "4.34", ["4.4", "4.345"]),
        ("-4 degrees", "4", ["-4"]),
        ("On 2023-10-01.", "2023-10-02", ["2023-10-01"]),
        ("| tokens | 34 |", "35", ["34"]),
        ("> 34 tokens.", "35", ["34"]),
        ("![A picture with 34 bars](a.svg)", "35", ["34"]),
        ("a run 5 times as long", "4", ["5"]),
    ],
)
def test_a_number_in_no_output_is_listed(make_notebook, prose, output, expected):
    assert numbers_listed(make_notebook, prose, output) == expected


@pytest.mark.parametrize(
    "prose",
    [
        "# 03 · Title\n\nAbout **85 minutes**. You need notebook 02 and notebooks 0 and 1.",
        "## 4. The gate\n\nAs in section 2, sections 2, 3 and 5, and Exercise 04.1: read.",
        "1. First\n2. Second\n\n> 3. Third",
        "By rules 1 to 3, remedy 2, question 1.",
        "Inline `f(17)` and\n\n```python\nx = 99\n```\n",
        "GPT-2, Qwen2.5, BM25, INV-004217, call_2, x86",
        "[03, section 7](03_agent_loop.ipynb), <br width='7'> https://example.org/88",
        "Weights fade (Weng, 2023).",
        "**Sources.** L. Weng, *Agents*, 2023. RFC 9110, section 10.2.3,\ncells 44 to 46.",
    ],
)
def test_labels_names_code_and_sources_are_no_claims(make_notebook, prose):
    assert list(claims(make_notebook(prose))) == []


def test_minutes_belong_to_the_opener_only(make_notebook):
    notebook = make_notebook("# 03 · Title", "About 85 minutes.")
    assert [(claim.cell, claim.number) for claim in claims(notebook)] == [(2, "85")]


def test_what_follows_the_sources_is_read(make_notebook):
    assert numbers_listed(make_notebook, "**Sources.** A, 2023.\n\nIt has 58 tokens.") == ["58"]


def test_a_published_number_is_cited_and_its_neighbours_are_not(make_notebook):
    prose = "The *published* run stored 205 characters; ours 214. It had 66 tokens."
    assert numbers_listed(make_notebook, prose) == ["214", "66"]


def test_a_cell_tagged_cited_is_not_read(make_notebook):
    cited = new_markdown_cell("They report 77 % of 205.", metadata={"tags": ["cited"]})
    assert unsupported(make_notebook(cited)) == []
    del cited.metadata["tags"]
    assert len(unsupported(make_notebook(cited))) == 2


def test_settings_in_code_count_and_comments_do_not(make_notebook):
    prose = "A budget of 52, 1,000 times, and 64 more."
    assert numbers_listed(make_notebook, prose, code="f(52, 1_000)  # gives 64") == ["64"]


def test_the_number_of_an_exercise_is_no_evidence(make_notebook):
    assert numbers_listed(make_notebook, "It is 3.2 long.", code='check("03.2", x)') == ["3.2"]


def test_html_counts_by_what_can_be_read_of_it(make_notebook):
    markup = "<style>td {width: 41px}</style><td title='42'>43</td>&nbsp;44"
    notebook = make_notebook("41, 42, 43 and 44", ("t()", shown(text__html=markup)))
    assert [claim.number for claim in unsupported(notebook)] == ["41", "42"]


def test_an_error_that_is_shown_counts(make_notebook):
    error = new_output("error", ename="E", evalue="needs 579 tokens", traceback=[])
    assert unsupported(make_notebook("It needs 579.", ("f()", error))) == []


def test_the_evidence_is_the_notebooks_own(make_notebook):
    first, second = make_notebook(("f()", shown("58"))), make_notebook("It has 58 tokens.")
    assert unsupported(first) == []
    assert [str(claim) for claim in unsupported(second)] == [
        "cell 1: 58 is in no output: «It has 58 tokens.»"
    ]
