"""Views: HTML and text say the same, markup is shown and not obeyed, charts state a conclusion."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils import messages as m
from course_utils.errors import CourseError
from course_utils.show import View, bars, lines, messages, prompt, table, tokens
from course_utils.show.chat import split_turns

EVIL = "<script>alert('x')</script>&\"</table>"
CHATML = (
    "<|im_start|>system\nBe brief.<|im_end|>\n"
    "<|im_start|>user\nWeather?<|im_end|>\n"
    "<|im_start|>assistant\n<tool_call>{}</tool_call><|im_end|>\n"
    "<|im_start|>user\n<tool_response>\n2 degrees\n</tool_response><|im_end|>\n"
    "<|im_start|>assistant\n"
)


class Reader(HTMLParser):
    """Collects the tags and the visible text of a piece of HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def names(self):
        return {tag for tag, _ in self.tags}


def all_views(text):
    return [
        table([{"a": text, text or "b": 1}], caption=text),
        table([[text, 2]], [text, "n"]),
        prompt(text),
        prompt([(text, text)], count=len, caption=text),
        messages([m.user(text), {"role": "assistant", "content": text}], caption=text),
        messages([m.assistant("", [m.ToolCall(text, text, {"x": text})])]),
        messages([m.tool(m.ToolResult(text, text, text))]),
        tokens([1], lambda ids: text, caption=text),
        bars([text], [1], caption=f"c{text}", alt=f"a{text}", unit=text),
        lines({text: [1, 2]}, f"c{text}", f"a{text}", x_label=text, y_label=text),
    ]


@pytest.mark.parametrize("view", all_views(EVIL))
def test_markup_is_shown_and_not_obeyed(view):
    seen = Reader(view._repr_html_())
    assert "script" not in seen.names()
    assert "<script>" in seen.text


@given(st.text())
def test_any_text_gives_views_without_foreign_tags(text):
    known = {"table", "caption", "thead", "tbody", "tr", "th", "td", "div", "strong", "pre", "b"}
    known |= {"ol", "li", "span", "br", "small", "figure", "figcaption", "svg", "title", "text"}
    known |= {"rect", "path", "polyline"}
    for view in all_views(text):
        assert Reader(view._repr_html_()).names() <= known
        assert isinstance(repr(view), str)


@pytest.mark.parametrize("view", all_views("plain")[:7])
def test_colours_are_theme_variables_with_fallbacks(view):
    for colour in re.findall(r"(?<!-)(?:color|border-left|fill|stroke): ([^;\"]+)", view.html):
        assert re.search(r"var\(--jp-[a-z0-9-]+, (#[0-9a-f]{6}|inherit)\)", colour), colour


def test_a_table_is_semantic_and_its_twin_aligned():
    view = table([{"city": "Moscow", "temp": 2}, {"city": "Rome", "temp": 31}], caption="Weather")
    assert repr(view).splitlines() == [
        "Weather",
        "city    temp",
        "------  ----",
        "Moscow     2",
        "Rome      31",
    ]
    seen = Reader(view.html)
    scopes = [attrs["scope"] for tag, attrs in seen.tags if tag == "th"]
    assert scopes == ["col", "col", "row", "row"]
    assert "caption" in seen.names()
    for word in ("Weather", "city", "temp", "Moscow", "31"):
        assert word in seen.text


def test_a_table_chooses_columns_and_fills_gaps():
    view = table([{"a": 1, "b": None}, {"b": True, "c": 2.0}], columns=["b", "c"])
    assert repr(view).splitlines()[2:] == ["", "yes  2"]


def test_a_long_cell_continues_on_the_next_line():
    text = repr(table([["x", "word " * 40]], ["k", "v"]))
    assert max(map(len, text.splitlines())) < 70
    assert text.count("word") == 40


def test_an_empty_table_is_only_its_head():
    assert repr(table([], ["a", "b"], "Nothing")) == "Nothing\na  b\n-  -"


@pytest.mark.parametrize(
    ("rows", "columns", "word"),
    [([[1, 2]], None, "columns"), ([[1, 2]], ["a"], "fit"), (["ab"], ["a", "b"], "fit")],
)
def test_rows_that_do_not_fit_are_named(rows, columns, word):
    with pytest.raises(CourseError, match=word):
        table(rows, columns)


def test_a_prompt_is_split_by_role():
    roles = [role for role, _ in split_turns(CHATML)]
    assert roles == ["system", "user", "assistant", "tool result, as user", "assistant"]


@given(
    st.lists(
        st.sampled_from(["<|im_start|>", "<|im_end|>", "user", "\n", "tool", "<tool_response>"])
        | st.text(max_size=5)
    ).map("".join)
)
def test_nothing_of_a_prompt_gets_lost(text):
    assert "".join(part for _, part in split_turns(text)) == text


def test_a_prompt_shows_roles_special_tokens_and_counts():
    view = prompt(CHATML, count=len, caption="What the model reads")
    seen = Reader(view.html)
    for text in (repr(view), seen.text):
        assert text.count("<|im_start|>") == 5
        assert "system · 39 tokens" in text
        assert f"{len(CHATML)} tokens in 5 blocks" in text
        assert "What the model reads" in text


def test_a_prompt_without_counts_has_only_roles():
    assert repr(prompt([("user", "Hi")])) == "── user\nHi"


def test_messages_show_calls_and_what_they_answer():
    call = m.ToolCall("call_1", "get_weather", {"city": "Москва"})
    view = messages(
        [
            m.user("Weather?"),
            m.assistant("", [call]),
            m.tool(m.ToolResult("call_1", "get_weather", "2 degrees")),
            {"role": "assistant", "content": ""},
        ]
    )
    assert '→ call_1: get_weather({"city": "Москва"})' in repr(view)
    assert "tool (get_weather)  ← call_1:" in repr(view)
    assert "2 degrees" in repr(view) and "(empty)" in repr(view)
    assert '→ call_1: get_weather({"city": "Москва"})' in Reader(view.html).text


def test_tokens_show_spaces_and_ids():
    words = {5: " Hello", 6: "\n"}
    view = tokens([5, 6], lambda ids: "".join(words[number] for number in ids))
    assert repr(view) == "2 tokens: ·Hello[5] ⏎[6]"
    assert "·Hello" in view.html and ">5<" in view.html
    with pytest.raises(CourseError, match="decode"):
        tokens([5], lambda ids: ids)


def svg(view):
    return ElementTree.fromstring(re.search(r"<svg.*</svg>", view.html, re.S).group())


def test_bars_are_as_long_as_their_values():
    view = bars(["a", "b", "none"], [1, 4, 0], "Calls", "b calls most.", unit="calls")
    assert [line.count("█") for line in repr(view).splitlines()[1:]] == [6, 24, 0]
    picture = svg(view)
    widths = [float(rect.get("width")) for rect in picture.findall(".//{*}rect")]
    assert widths[0] * 4 == pytest.approx(widths[1], abs=0.3) and widths[2] == 0
    assert picture.get("role") == "img" and picture.get("aria-label") == "b calls most."
    assert picture.get("fill") == "currentColor"
    assert "4 calls" in repr(view) and "4 calls" in "".join(picture.itertext())


def test_bars_show_intervals_in_both():
    view = bars(["a"], [0.5], "Rate", "Half.", intervals=[(0.3, 0.7)])
    assert "0.5 (0.3–0.7)" in repr(view) and "0.5 (0.3–0.7)" in view.html


def test_lines_differ_by_more_than_colour_and_carry_their_names():
    view = lines({"whole": [10, 20, 40], "fixed": [10, 12, 14]}, "Growth", "Doubles.", x_label="n")
    curves = list(svg(view).findall(".//{*}polyline"))
    assert len({curve.get("stroke-dasharray") for curve in curves}) == 2
    assert "■ fixed: 14" in view.html and "● whole: 40" in view.html
    assert repr(view).splitlines()[-1].split() == ["3", "40", "14"]


def test_names_of_curves_that_end_together_do_not_overlap():
    view = lines({"a": [1, 9], "b": [2, 9], "c": [3, 9]}, "Growth", "All the same.")
    texts = svg(view).findall(".//{*}text")
    heights = sorted(float(t.get("y")) for t in texts if str(t.text).endswith(": 9"))
    assert len(heights) == 3
    assert all(b - a >= 15 for a, b in zip(heights, heights[1:], strict=False))


def test_a_higher_number_is_drawn_higher():
    points = svg(lines({"a": [1, 3]}, "c", "a")).find(".//{*}polyline").get("points").split()
    first, last = ([float(part) for part in point.split(",")] for point in points)
    assert last[0] > first[0] and last[1] < first[1]


@given(st.lists(st.floats(0, 1e12) | st.integers(0, 10**9), min_size=1, max_size=20))
def test_any_numbers_stay_inside_the_picture(values):
    for rect in svg(bars([str(v) for v in values], values, "c", "a")).findall(".//{*}rect"):
        assert 0 <= float(rect.get("width")) <= 640
    for curve in svg(lines({"a": values}, "c", "a")).findall(".//{*}polyline"):
        for point in curve.get("points").split():
            px, py = map(float, point.split(","))
            assert 0 <= px <= 640 and 0 <= py <= 260


@pytest.mark.parametrize(
    "draw",
    [
        lambda: bars(["a"], [1], "c", " "),
        lambda: bars(["a"], [1], "", "a"),
        lambda: bars(["a", "b"], [1], "c", "a"),
        lambda: bars(["a"], [-1], "c", "a"),
        lambda: bars(["a"], [float("nan")], "c", "a"),
        lambda: bars(["a"], [1], "c", "a", intervals=[(0, 1), (0, 1)]),
        lambda: lines({}, "c", "a"),
        lambda: lines({"a": []}, "c", "a"),
        lambda: lines({"a": [1], "b": [1, 2]}, "c", "a"),
        lambda: lines({"a": [1, 2]}, "c", "a", x=[2, 1]),
        lambda: lines({str(n): [1] for n in range(5)}, "c", "a"),
    ],
)
def test_a_chart_that_would_mislead_is_refused(draw):
    with pytest.raises(CourseError):
        draw()


def test_views_can_be_stacked():
    assert repr(View("a", "<p>a</p>") + View("b", "<p>b</p>")) == "a\n\nb"
