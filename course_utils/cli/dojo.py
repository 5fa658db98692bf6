"""`agentdojo`: the course's gate against a benchmark that others wrote."""

import sys
from argparse import Namespace
from importlib import metadata

from course_utils.dojo import benchmark, results
from course_utils.dojo.gates import POLICIES
from course_utils.dojo.knowledge import SUITES
from course_utils.dojo.people import PEOPLE
from course_utils.dojo.suites import VERSION, Suite
from course_utils.show import table

COMMAND = "python -m course_utils agentdojo"


def dojo_verb(arguments: Namespace) -> int:
    """Run the benchmark and print a table per suite; write the result if all suites ran."""
    names = list(dict.fromkeys(arguments.suites)) or list(SUITES)
    suites = [Suite(name) for name in names]
    say(f"AgentDojo {VERSION}: {', '.join(names)} (a few minutes)")
    rows = benchmark.rows(suites)
    show(rows, names)
    if len(names) < len(SUITES):
        return 0
    say("The same with each injection's text written into the world …")
    planted = [Suite(name, planted=True) for name in names]
    text_rows = benchmark.rows(planted, ("no gate", "ask always", "provenance", "own words"))
    show(text_rows, [])
    say("The provenance policy on tools that nobody described to it …")
    transfer = benchmark.transfer_rows(suites)
    print(table(results.transfer_table(transfer)), end="\n\n")
    results.save(
        {
            "command": COMMAND,
            "package": f"agentdojo {metadata.version('agentdojo')}",
            "suites": VERSION,
            "seed": benchmark.SEED,
            "pairs_in_all": sum(each.all_injections * len(each.user_tasks) for each in suites),
            "done_anyway": [task for each in suites for task in benchmark.done_anyway(each)],
            "policies": POLICIES,
            "people": PEOPLE,
            "rows": rows,
            "planted": text_rows,
            "transfer": transfer,
        }
    )
    print(f"Written: {results.FILE.relative_to(results.FILE.parents[2])}")
    return 0


def show(rows: list[dict], names: list[str]) -> None:
    """Print a table per suite, and one for all of them."""
    for name in [*names, "all"] if len(names) != 1 else names:
        print(table(results.table_rows(rows, name), caption=f"Suite: {name}"), end="\n\n")


def say(text: str) -> None:
    """Tell the person who waits; the tables alone go to standard output."""
    print(text, file=sys.stderr, flush=True)
