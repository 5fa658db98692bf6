"""The trimming explorer, used with the keyboard and with the mouse, in both themes."""

from __future__ import annotations

import pytest
from driver import insert_first, open_notebook, run_all

pytestmark = pytest.mark.browser
CELL = """\
from course_utils.memory import Rules
from course_utils.widgets import trimming_explorer, trimming_view

roles = "system user assistant user assistant user assistant user".split()
texts = ["Be brief.", "Hi, I am Bob.", "Hi Bob.", "<b>Where</b> is Oslo?", "In Norway.",
         "And Rome?", "In Italy.", "What's my name?"]
history = [{"role": r, "content": t} for r, t in zip(roles, texts)]
costs = [10, 6, 5, 12, 20, 7, 9, 6]
trimming_explorer(history, costs, 52)
"""
TWIN = "trimming_view(history, costs, 52)"
SENT = "Budget {} tokens: {} of 8 messages sent, {} of 75 tokens."
THEME = """theme => { window.jupyterapp.commands.execute('apputils:change-theme', {theme}); }"""
THEME_IS = """theme => document.body.dataset.jpThemeName === theme"""


@pytest.fixture
def explorer(page, lab):
    """The widget's box in a notebook that has just run."""
    open_notebook(page, lab, "empty.ipynb")
    insert_first(page, TWIN)
    insert_first(page, CELL)
    assert not any(cell["errors"] + cell["stderr"] for cell in run_all(page))
    box = page.locator(".jp-OutputArea-output .widget-vbox")
    box.get_by_text(SENT.format(52, 4, 32)).wait_for()
    return box


def test_the_keyboard_moves_the_budget_and_flips_a_rule(page, explorer):
    handle = explorer.locator(".noUi-handle")
    handle.focus()
    for _ in range(21):
        page.keyboard.press("ArrowLeft")
    # One below the 32 tokens that four messages need: only one user turn is left.
    explorer.get_by_text(SENT.format(31, 2, 16)).wait_for()
    page.keyboard.press("ArrowRight")
    explorer.get_by_text(SENT.format(32, 4, 32)).wait_for()
    page.keyboard.press("Home")
    explorer.get_by_text("trim raises BudgetTooSmall here.").wait_for()
    page.keyboard.press("End")
    explorer.get_by_text(SENT.format(75, 8, 75)).wait_for()
    for _ in range(3):  # by Tab over the number to the first switch
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.type === 'checkbox'"):
            break
    page.keyboard.press("Space")
    handle.focus()
    for _ in range(45):
        page.keyboard.press("ArrowLeft")
    explorer.get_by_text(SENT.format(30, 3, 21)).wait_for()
    explorer.get_by_text("The newest message is not sent").wait_for()
    assert not page.problems


def test_the_mouse_flips_a_rule_in_both_themes(page, explorer, screenshots):
    explorer.get_by_text("whole messages only").click()
    explorer.get_by_text("begin with a user message").click()
    explorer.locator(".noUi-handle").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    explorer.get_by_text("Message 5 is cut: only 16 of its 20 tokens are sent.").wait_for()
    explorer.get_by_text("It begins with an assistant's message").wait_for()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(THEME, theme)
        page.wait_for_function(THEME_IS, arg=theme)
        page.wait_for_timeout(1000)
        shot = f"trimming-{theme.split()[1].lower()}"
        explorer.screenshot(path=screenshots / f"{shot}.png")
        twin = page.locator(
            ".jp-OutputArea-output.jp-RenderedHTML", has_text=SENT.format(52, 4, 32)
        )
        twin.screenshot(path=screenshots / f"{shot}-static.png")
        colours = explorer.locator("table").evaluate(
            "t => [getComputedStyle(t).color, getComputedStyle(document.body).backgroundColor]"
        )
        assert colours[0] != colours[1]
    assert explorer.locator("table b").count() == 0, "text of a message was obeyed as markup"
    assert not page.problems


def test_on_a_narrow_page_the_table_scrolls_in_itself(page, explorer, screenshots):
    page.set_viewport_size({"width": 700, "height": 1200})
    page.wait_for_timeout(500)
    explorer.screenshot(path=screenshots / "trimming-narrow.png")
    outside = explorer.evaluate(
        """box => {
          const edge = box.getBoundingClientRect().right;
          return [...box.children].filter(c => c.getBoundingClientRect().right > edge + 1).length;
        }"""
    )
    assert outside == 0
    scrolls = "html => [html, ...html.querySelectorAll('*')].some(e => e.scrollLeft > 0)"
    explorer.locator("th", has_text="total").scroll_into_view_if_needed()
    assert explorer.locator(".widget-html").evaluate(scrolls)
