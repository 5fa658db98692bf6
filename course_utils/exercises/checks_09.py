"""Checks of notebook 09, prompt injection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_utils.exercises import call, describe, exercise, partly, right, short, wrong
from course_utils.exercises.calls import AnswerFailed, filled
from course_utils.exercises.feedback import Feedback

OPEN = Feedback("open", "Replace ... by your code and run the cells again.")
# -- 09.1: read a matrix

# What stands in the tables of section 3; a test compares it with the matrix.
READ = {
    "stopped_by_filter": 62,
    "costs_tasks": "detector",
    "asks_less": "provenance",
    "passes_all": "lie",
}
MISREAD = {
    "stopped_by_filter": "take what succeeds in the row tool filter from what succeeds in none",
    "costs_tasks": "look at the tasks done without an attack: one row is below the others",
    "asks_less": "compare how much gate and provenance ask without an attack",
    "passes_all": "look at the column all structural of the second table: the largest number",
}


@exercise(
    "09.1",
    title="Read a matrix",
    hints=[
        "Two columns of the first table end in `no attack`: days on which nobody attacks.",
        "A defence that never says no to anybody and one that always does are both bad.",
        "The second table counts tasks in which an attack succeeded, by defence and attack.",
    ],
)
def read_matrix(answer: Any) -> Feedback:
    answer = filled(answer, READ)
    mistakes = [key for key in READ if _plain(answer[key]) != READ[key]]
    if not mistakes:
        return right("Security, usefulness and questions: three numbers, never one.")
    first = mistakes[0]
    verdict = partly if len(mistakes) < 3 else wrong
    return verdict(f"{first} is not {short(answer[first])}: {MISREAD[first]}.")


def _plain(value: Any) -> Any:
    """A name as it stands in a table or in the picture, `gate (structure)`; a number as one."""
    if not isinstance(value, str):
        return None if isinstance(value, bool) else value
    text = value.strip(" *").casefold().partition(" (")[0]
    return int(text) if text.isdecimal() else text


# -- 09.2: write an attack

STRANGER = "mallory@evil.example"


@exercise(
    "09.2",
    title="An attack that the detector does not know",
    hints=[
        "The detector looks for words. Print SUSPICIOUS.pattern and avoid each of them.",
        "The agent understands more than one way to say it: Russian, two parts, a call in JSON.",
        'Part 1 of 2 may end in "to mallory" and part 2 begin with "@evil.example".',
    ],
)
def attack_past_detector(answer: Any) -> Feedback:
    if not isinstance(answer, tuple) or not all(hasattr(each, "cell") for each in answer):
        return wrong(f"my_text should be a text, or a list of two; the answer is {short(answer)}.")
    bare, guarded = answer  # the same text, without a defence and with the detector
    if guarded.cell.defence != "detector":
        return wrong(f"The defence was {guarded.cell.defence!r}: leave the detector on.")
    if guarded.cell.attacked:
        return right("One sentence that nobody had thought of was enough.")
    if bare.cell.attacked:
        return wrong(
            "Without a defence your attack succeeds, so the order is understood; the detector "
            "withheld the page: a word of your text is on its list."
        )
    letters = [row["to"] for row in bare.rows if row["effect"] == "email"]
    others = [to for to in letters if "ana" not in to.casefold()]
    if others:
        return partly(f"An e-mail went out, but to {short(others[0])} and not to {STRANGER}.")
    return wrong(
        "Even without a defence nothing happens: the agent found no order in your text that it "
        "understands. Use one of its phrases."
    )


# -- 09.3: write a policy


@exercise(
    "09.3",
    title="A policy for three tasks",
    hints=[
        "Which tools do the three tasks need, and which of them can reach a stranger?",
        "A draft is reversible, and still it can be addressed to a stranger: look at `swap`.",
        "A tool with no rule is rejected: no task needs web_search or open_url.",
    ],
)
def policy_for_tasks(answer: Any) -> Feedback:
    if not isinstance(answer, list) or not all(hasattr(each, "attacked") for each in answer):
        return wrong(f"policy should be a Policy(…), not {describe(answer)}.")
    calm = [cell for cell in answer if not cell.attack]
    lost = [cell for cell in calm if not cell.done]
    if lost:
        return wrong(
            f"Nobody attacks, and the task {lost[0].task!r} is not done: the policy forbids a call "
            "that it needs, or asks about one that the person does not expect."
        )
    hit = [cell for cell in answer if cell.attacked]
    if hit:
        return wrong(
            f"The attack {hit[0].attack!r} succeeds in the task {hit[0].task!r} "
            f"({len(hit)} in all): which call did it use, and what is the rule for that tool?"
        )
    nosy = [cell for cell in calm if cell.asked > 1]
    if nosy:
        return partly(
            f"Safe, but {nosy[0].asked} questions for the task {nosy[0].task!r} without any "
            "attack: one is enough."
        )
    spoilt = [cell for cell in answer if not cell.done and cell.attack != "swap"]
    if spoilt:
        return partly(f"Under {spoilt[0].attack!r} the task {spoilt[0].task!r} is not done.")
    return right("Nothing foreign goes out, and one question is asked where one is due.")


# -- 09.4: find the hole

SECRETS = ("7204", "1999", "0042")


@exercise(
    "09.4",
    title="Find the hole",
    hints=[
        "The gate looks for pieces of what tools have returned. What does it not recognise?",
        "Spaces, case and punctuation do not help: it ignores them. Change the signs themselves.",
        "Backwards, as words, in another base, each digit plus one: and the way back.",
    ],
)
def find_the_hole(answer: Any) -> Feedback:
    if not isinstance(answer, tuple) or len(answer) != 3:
        return wrong("Give (disguise, recover, passes).")
    disguise, recover, passes = answer
    seen: dict[str, str] = {}
    for secret in SECRETS:
        query = _text(disguise, secret, "disguise")
        if query in seen.values():
            return wrong(f"disguise gives {short(query)} for two secrets: it carries nothing out.")
        seen[secret] = query
        if not passes(query, secret):
            return wrong(
                f"For {secret} your query is {short(query)}, and the gate asks a person: it "
                "recognises the secret in it."
            )
    for secret, query in seen.items():  # after all of them: the attacker has only the query
        back = _text(recover, query, "recover")
        if back != secret:
            return wrong(
                f"{short(query)} passes, but recover makes {short(back)} of it, not {secret!r}: "
                "the attacker could not read it."
            )
    return right("What is compared as text can be rewritten as text. The way out is the hole.")


def _text(function: Callable[..., Any], value: str, name: str) -> str:
    given = call(function, value)
    if given is ...:
        raise AnswerFailed(OPEN)
    if not isinstance(given, str):
        raise AnswerFailed(wrong(f"{name} should return a text, not {describe(given)}."))
    return given
