"""A page that an agent has read must stay text in the learner's browser, whatever is in it."""

from __future__ import annotations

import pytest
from driver import insert_first, open_notebook, run_all

pytestmark = pytest.mark.browser
# Everything here would leave a mark on the page, or fetch something, if it came alive.
EVIL = (
    "</td></tr></table></pre><script>window.injected='script'</script>"
    "<img src=x onerror=\"window.injected='img'\"><svg onload=\"window.injected='svg'\"></svg>"
    "<iframe srcdoc=\"<script>parent.injected='frame'</script>\"></iframe>"
    "<style>.jp-Notebook{display:none}</style><a href=\"javascript:window.injected='link'\">x</a>"
    "[y](javascript:window.injected='md') ![z](https://evil.example/?q=7204) 'quotes' \"double\""
)
CELL = f"""\
from IPython.display import display
from course_utils.exercises import check, predict
from course_utils.injection import Ledger, Obedient, attack, defence, tasks, trial
from course_utils.messages import Reply, ToolCall, ToolResult, assistant, system, tool, user
from course_utils.show import bars, lines, table
from course_utils.show.chat import messages, prompt, tokens
from course_utils.show.traces import trace

EVIL = {EVIL!r}
done = trial(Obedient, tasks()["recipe"], attack("mine", [EVIL]), defence("provenance"))
folder = trial(Obedient, tasks()["folder"], attack("mine", [EVIL]))
call = ToolCall("c", "read_page", {{EVIL: EVIL}})
talk = [system(EVIL), user(EVIL), assistant(EVIL, (call,)), tool(ToolResult("c", "t", EVIL))]
ledger = Ledger("Hi")
ledger.saw("read_page", EVIL)
display(done.runs[0], trace(done.runs[0].trace, caption=EVIL), trace(folder.runs[0].trace))
display(messages(talk, EVIL), prompt("<|im_start|>user\\n" + EVIL + "<|im_end|>\\n"))
display(tokens([0], lambda ids: EVIL, EVIL), table([[EVIL]], [EVIL], EVIL), table(done.rows))
display(bars([EVIL], [1], EVIL, EVIL), lines({{EVIL: [1, 2]}}, EVIL, EVIL))
display(Reply(EVIL, origin="scripted", model=EVIL), done, ledger.mark("window.injected"))
display(predict("09.9", EVIL), table([[ledger.mark("window.injected").quote]], ["quote"]))
"""
# Elements of an output that markup from outside could have made. (JupyterLab makes a link of an
# address in plain text; nothing is fetched until somebody follows it.)
ALIVE = """() => [...document.querySelectorAll('.jp-OutputArea-output')]
  .flatMap(output =>
    [...output.querySelectorAll('script, img, iframe, style, a[href^="javascript"]')])
  .map(element => element.outerHTML.slice(0, 120))
  .filter(html => /injected|evil|display:none|src="?x/.test(html))"""


def test_no_output_brings_the_markup_of_a_page_to_life(page, lab, screenshots):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_notebook(page, lab, "empty.ipynb")
    insert_first(page, CELL)
    cells = run_all(page)
    page.wait_for_timeout(1000)
    page.screenshot(path=screenshots / "injected_html.png")
    assert not cells[0]["errors"] and not cells[0]["stderr"]
    assert cells[0]["outputs"] >= 15
    assert page.evaluate("() => window.injected ?? null") is None
    assert page.evaluate(ALIVE) == []
    assert not [url for url in asked if "evil.example" in url]
    assert page.locator(".jp-Notebook").first.is_visible()
    assert not page.problems
    # It is there, to be read:
    assert page.get_by_text("window.injected='script'").count() >= 5


def test_markup_that_is_not_escaped_would_be_seen(page, lab):
    """The check above must be able to fail."""
    open_notebook(page, lab, "empty.ipynb")
    insert_first(
        page,
        "from IPython.display import HTML\n"
        "HTML('<img src=x onerror=\"window.injected=1\">'\n"
        "     '<img src=https://evil.example/?q=7204>')",
    )
    run_all(page)
    page.wait_for_timeout(500)
    assert page.evaluate(ALIVE) != []
