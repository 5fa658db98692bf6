"""The trace stepper, used with the keyboard and with the mouse, in both themes."""

from __future__ import annotations

import pytest
from driver import insert_first, open_notebook, run_all

pytestmark = pytest.mark.browser
CELL = """\
from course_utils.code_trace import Call, CodeRun, CodeStep
from course_utils.messages import Message
from course_utils.widgets import trace_stepper, trace_view

evil = '<img src=x onerror="document.title = 1"><script>document.title = 1</script>'
long = "You are an agent. " * 300
steps = (
    CodeStep(1, evil, "print(search('Paris'))", (Call("search", {"query": evil}, evil),), evil,
             tokens_in=2067, tokens_out=40, origin="scripted",
             added=(Message("system", long), Message("user", "Weather?"))),
    CodeStep(2, "no code", None, (), "", f"Error in code parsing: {evil}", 2242, 8,
             origin="scripted", added=(Message("assistant", "…"), Message("user", evil)), reread=2),
    CodeStep(3, "Clear.", None, (), "", "", 400, 3, origin="scripted", kind="forced",
             is_final=True, added=(Message("system", "Answer now."),)),
)
run = CodeRun("Weather?", {"search": ""}, steps, "Clear.", "max_steps")
trace_stepper(run)
"""
TWIN = "trace_view(run, 2)"
AT = "Step {} of 3:"
THEME = """theme => { window.jupyterapp.commands.execute('apputils:change-theme', {theme}); }"""
THEME_IS = """theme => document.body.dataset.jpThemeName === theme"""


@pytest.fixture
def stepper(page, lab):
    """The widget's box in a notebook that has just run."""
    open_notebook(page, lab, "empty.ipynb")
    insert_first(page, TWIN)
    insert_first(page, CELL)
    assert not any(cell["errors"] + cell["stderr"] for cell in run_all(page))
    box = page.locator(".jp-OutputArea-output .widget-vbox")
    box.get_by_text(AT.format(1)).wait_for()
    return box


def test_the_keyboard_steps_forth_and_back(page, stepper):
    button = stepper.get_by_role("button", name="next")
    button.focus()
    page.keyboard.press("Enter")
    stepper.get_by_text("2,242 tokens in (2,067 read again, 175 new)").wait_for()
    page.keyboard.press("Space")
    stepper.get_by_text(AT.format(3)).wait_for()
    stepper.get_by_text("The step limit was reached").wait_for()
    page.keyboard.press("Enter")  # at the end it stays, and keeps the focus
    assert page.evaluate("() => document.activeElement.innerText.includes('next')")
    stepper.get_by_text(AT.format(3)).wait_for()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    stepper.get_by_text(AT.format(2)).wait_for()
    handle = stepper.locator(".noUi-handle")
    handle.focus()
    page.keyboard.press("ArrowLeft")
    stepper.get_by_text(AT.format(1)).wait_for()
    page.keyboard.press("End")
    stepper.get_by_text(AT.format(3)).wait_for()
    assert not page.problems


def test_hostile_text_is_shown_and_not_obeyed(page, stepper):
    title = page.title()
    for place in (1, 2):
        stepper.get_by_text(AT.format(place)).wait_for()
        assert stepper.get_by_text("<img src=x onerror=").first.is_visible()
        assert stepper.locator("img, script").count() == 0
        stepper.get_by_role("button", name="next").click()
    stepper.get_by_text(AT.format(3)).wait_for()
    page.wait_for_timeout(500)
    assert page.title() == title and title != "1"
    assert not page.problems


def test_it_can_be_read_in_both_themes_and_beside_its_twin(page, stepper, screenshots):
    stepper.get_by_role("button", name="next").click()
    stepper.get_by_text(AT.format(2)).wait_for()
    twin = page.locator(".jp-OutputArea-output.jp-RenderedHTML", has_text=AT.format(2))
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(THEME, theme)
        page.wait_for_function(THEME_IS, arg=theme)
        page.wait_for_timeout(1000)
        shot = f"trace-stepper-{theme.split()[1].lower()}"
        stepper.screenshot(path=screenshots / f"{shot}.png")
        twin.screenshot(path=screenshots / f"{shot}-static.png")
        colours = stepper.locator("pre").first.evaluate(
            "t => [getComputedStyle(t).color, getComputedStyle(document.body).backgroundColor]"
        )
        assert colours[0] != colours[1]
    text = "e => e.querySelector('[role=status]').closest('div[style]').innerText"
    shown = stepper.locator(".widget-html-content").evaluate(text)
    assert shown.split() == twin.evaluate(text).split()
    assert not page.problems


def test_a_long_prompt_scrolls_in_itself_on_a_narrow_page(page, stepper, screenshots):
    page.set_viewport_size({"width": 700, "height": 1200})
    page.wait_for_timeout(500)
    stepper.screenshot(path=screenshots / "trace-stepper-narrow.png")
    outside = stepper.evaluate(
        """box => {
          const edge = box.getBoundingClientRect().right;
          return [...box.querySelectorAll('*')]
            .filter(c => c.getBoundingClientRect().right > edge + 1).length;
        }"""
    )
    assert outside == 0
    prompt = stepper.locator("pre").first
    prompt.focus()
    page.keyboard.press("PageDown")
    page.wait_for_function("() => document.activeElement.scrollTop > 0")
    assert prompt.evaluate("e => e.clientHeight < e.scrollHeight")
