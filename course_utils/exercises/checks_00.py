"""The checks of notebook 00: the self-test of prerequisites, and a conversation's next prompt."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_utils.exercises import (
    Feedback,
    call,
    describe,
    exercise,
    partly,
    right,
    short,
    wrong,
)


@dataclass(frozen=True)
class Item:
    """One question: its subject, what is a right answer, the idea, and what to read about it."""

    subject: str
    accepts: Callable[[Any], bool]
    idea: str
    read: str


def _exactly(*wanted: Any) -> Callable[[Any], bool]:
    # 0 == False and 1 == True in Python, but they are different answers here.
    return lambda answer: any(type(answer) is type(w) and answer == w for w in wanted)


def _named(*names: str) -> Callable[[Any], bool]:
    """The name as text in any capitals, or the class itself."""

    def accepts(answer: Any) -> bool:
        name = answer.__name__ if isinstance(answer, type) else answer
        return isinstance(name, str) and name.strip().casefold() in names

    return accepts


def _about(low: float, high: float) -> Callable[[Any], bool]:
    """A share, or the same as per cent."""

    def accepts(answer: Any) -> bool:
        if isinstance(answer, bool) or not isinstance(answer, (int, float)):
            return False
        return low <= answer <= high or low <= answer / 100 <= high

    return accepts


TUTORIAL = "The Python Tutorial, "
ITEMS = {
    "a": Item(
        "default arguments",
        _exactly(6, 6.0),
        "an argument that is left out takes its default, so y is 2",
        TUTORIAL + '"More Control Flow Tools", Default Argument Values',
    ),
    "b": Item(
        "unpacking",
        _exactly(6, 6.0),
        "** hands each key of a dict over as an argument of that name, so x is 2 and y is 3",
        TUTORIAL + '"More Control Flow Tools", Unpacking Argument Lists',
    ),
    "c": Item(
        "dicts",
        _exactly(0),
        "get gives its second argument where the key is missing, and raises nothing",
        TUTORIAL + '"Data Structures", Dictionaries',
    ),
    "d": Item(
        "list mutation",
        lambda answer: isinstance(answer, list) and answer == [1, 2],
        "two and one are two names of the same list",
        'Python\'s Programming FAQ, "Why did changing list y also change list x?"',
    ),
    "e": Item(
        "comprehensions",
        lambda answer: isinstance(answer, list) and answer == [1, 9],
        "it keeps the odd ones of 0, 1, 2, 3 and squares them",
        TUTORIAL + '"Data Structures", List Comprehensions',
    ),
    "f": Item(
        "JSON",
        _named("str", "string", "text", "<class 'str'>"),
        "what stands in quotation marks in JSON is text, even if it looks like a number",
        TUTORIAL + '"Input and Output", Saving structured data with json',
    ),
    "g": Item(
        "exceptions",
        _named("valueerror"),
        "the argument has the right type, text, but a value that is no number",
        TUTORIAL + '"Errors and Exceptions"',
    ),
    "h": Item(
        "type hints",
        _exactly(False),
        "Python does not check hints when it runs; other programs read them",
        "The Python Standard Library, typing (the note at its start)",
    ),
    "i": Item(
        "HTTP status codes",
        lambda answer: answer == 429 or (isinstance(answer, str) and answer.strip() == "429"),
        "a server that is asked too often says 429, Too Many Requests",
        'MDN Web Docs, "HTTP response status codes", or RFC 6585',
    ),
    "j": Item(
        "probability",
        _about(0.59, 0.61),
        "ten successes in a row: the shares are multiplied, 0.95 ** 10",
        "OpenStax, Introductory Statistics, chapter Probability Topics: independent events",
    ),
}


@exercise(
    "00.1",
    title="Ten questions about what the course takes for granted",
    hints=[
        "Answer without running the code first. Then run the line you are unsure of in a new cell.",
        "d and c are about what a name stands for, and j about multiplying.",
    ],
)
def self_test(answers: Any) -> Feedback:
    if not isinstance(answers, dict):
        return wrong(f"The answers should be a dict with the keys a to j, not {describe(answers)}.")
    unknown = sorted(str(key) for key in answers if key not in ITEMS)
    if unknown:
        return wrong(f"There is no question {', '.join(unknown)}; the keys are a to j.")
    tried = {key: answers[key] for key in ITEMS if answers.get(key, ...) is not ...}
    if not tried:
        return Feedback("open", "Ten questions. Replace each ... by your answer and run it again.")
    failed = [key for key, answer in tried.items() if not ITEMS[key].accepts(answer)]
    lines = [_lesson(key, tried[key]) for key in failed]
    untried = [key for key in ITEMS if key not in tried]
    if untried:
        lines.append(f"Not answered yet: {', '.join(untried)}.")
    if not lines:
        return right("All ten. You have what this course builds on.")
    good = len(tried) - len(failed)
    say = partly if good else wrong
    return say("\n".join([f"{good} of 10 are right.", *lines, "Fill the gaps, or just go on."]))


def _lesson(key: str, answer: Any) -> str:
    item = ITEMS[key]
    if isinstance(answer, str) and item.accepts(_value(answer)):
        return f"{key}, {item.subject}: {answer.strip()} is meant; write it without the quotes."
    return f"{key}, {item.subject}: not {short(answer, 40)}; {item.idea}. Read: {item.read}."


def _value(text: str) -> Any:
    """What a text would be as Python, or the text itself."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


HISTORY = [
    {"role": "user", "content": "Hi! My dog is called Rex."},
    {"role": "assistant", "content": "What a good name!"},
    {"role": "user", "content": "He is three."},
]
REPLY, QUESTION = "Still young, then.", "What is my dog called?"


@exercise(
    "00.4",
    title="The messages of the next call",
    hints=[
        "Everything that the model should know must be in the list, oldest first.",
        "The model's reply goes in with the role assistant, the question with the role user.",
        "history + [{...}, {...}] makes a new list and leaves history alone.",
    ],
)
def next_messages(function: Any) -> Feedback:
    history = [dict(message) for message in HISTORY]
    sent = call(function, history, REPLY, QUESTION)
    if sent is ...:
        return Feedback("open", "Replace ... in the function by the list of messages.")
    if not isinstance(sent, (list, tuple)):
        return wrong(f"It should return a list of messages, not {describe(sent)}.")
    problem = _format_problem(sent) or _content_problem([(m["role"], m["content"]) for m in sent])
    if problem:
        return wrong(problem)
    if history != HISTORY:
        return partly(
            "The messages are right, but the list that was passed in has grown too: append and += "
            "change it. Whoever keeps that list would send the new messages twice."
        )
    return right("All that was said, oldest first, and the question last: the model can know it.")


def _format_problem(sent: Any) -> str:
    for message in sent:
        if not isinstance(message, dict):
            return f"Each message is a dict with role and content, not {describe(message)}."
        if set(message) != {"role", "content"}:
            return f"A message has the keys role and content; one has {sorted(map(str, message))}."
        if not isinstance(message["content"], str):
            return f"The content of a message is text, not {describe(message['content'])}."
    return ""


def _content_problem(sent: list[tuple[str, str]]) -> str:
    old = [(message["role"], message["content"]) for message in HISTORY]
    wanted = [*old, ("assistant", REPLY), ("user", QUESTION)]
    if sent == wanted:
        return ""
    texts = [text for _, text in sent]
    if QUESTION not in texts:
        return "The new question is missing: the model would not know what is asked."
    if texts == [QUESTION]:
        return "Only the question is sent. The model keeps nothing, so it cannot know about Rex."
    if texts[-1] != QUESTION:
        return "The question should come last: the model continues what it read last."
    if any(text not in texts for _, text in old):
        return "Not all of the history is sent; what is left out does not exist for the model."
    if REPLY not in texts:
        return "The model's own reply is missing: it keeps that no better than what you said."
    if sorted(texts) == sorted(text for _, text in wanted):
        if texts != [text for _, text in wanted]:
            return "All messages are there, but not in the order in which they were said."
        return "The texts are right, a role is not: the reply is the assistant's, the rest user's."
    return "There are more messages than were said: each should stand there once."
