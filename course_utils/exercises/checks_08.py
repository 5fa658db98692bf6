"""Checks of notebook 08, code agents."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from course_utils.exercises import call, describe, exercise, explain, partly, right, short, wrong
from course_utils.exercises.calls import AnswerFailed
from course_utils.exercises.feedback import Feedback

OPEN = Feedback("open", "Replace ... by your code and run the cells again.")

# -- 08.1: a program that answers ----------------------------------------------------------------

WORLDS = [
    {"Paris": 21, "Madrid": 33, "Moscow": 14},
    {"Oslo": -3, "Rome": 19, "Riga": 2, "Athens": 24},
    {"Zagreb": 8, "Bergen": 12, "Turin": 9},
    {"Nuuk": -20, "Tromsø": -9},
]


class _Answered(BaseException):
    """Ends a program, as final_answer does in an agent."""


def _run(program: str, world: dict[str, int]) -> tuple[list[Any], list[str]]:
    """(what final_answer got, the cities that were asked for) of a learner's program."""
    answers: list[Any] = []
    asked: list[str] = []

    def get_temperature(city: str) -> int:
        asked.append(city)
        return world[city]

    def final_answer(answer: Any) -> None:
        answers.append(answer)
        raise _Answered

    names = {"get_temperature": get_temperature, "final_answer": final_answer}
    names |= {"cities": list(world), "print": lambda *_, **__: None}
    try:
        exec(compile(program, "<program>", "exec"), names)
    except _Answered:
        pass
    except Exception as error:
        where = f" (cities: {', '.join(world)})"
        raise AnswerFailed(wrong(f"The program stops with {explain(error)}{where}.")) from error
    return answers, asked


@exercise(
    "08.1",
    title="One program that answers",
    hints=[
        "A program may call a tool as often as it likes: in a loop, in a comprehension, in max.",
        "Keep the temperatures with their cities, so that the city is not lost.",
        "max(cities, key=get_temperature) is a city; hand it to final_answer.",
    ],
)
def one_program(answer: Any) -> Feedback:
    if not isinstance(answer, str):
        return wrong(
            f"A program is text, in quotes, as the model writes it; not {describe(answer)}."
        )
    for world in WORLDS:
        best, cities = max(world, key=world.get), ", ".join(world)
        answers, asked = _run(answer, world)
        missing = [city for city in world if city not in asked]
        if not answers:
            return wrong("It ends without final_answer: the agent would have to go on.")
        if answers[0] in (world[best], str(world[best])):
            return wrong(
                f"It answers {answers[0]!r}, the temperature. Asked for was the city; the model "
                "made the same mistake."
            )
        if missing:
            return wrong(f"For {cities} it never asks for {', '.join(missing)}.")
        if answers[0] == min(world, key=world.get):
            return wrong(f"For {cities} it answers {answers[0]}, the coldest.")
        if answers[0] != best:
            return wrong(f"For {cities} it answers {short(answers[0])}; the warmest is {best}.")
        if len(asked) > len(world):
            return partly(
                f"The right city, but {len(asked)} calls for {len(world)} cities: keep what was "
                "returned, since every call costs."
            )
    return right("One step, one call for each city, and the answer is a city.")


# -- 08.2: what the traces say ---------------------------------------------------------------------

KEYS = ("weather", "car", "script")
PAGE = "what is my current plan"
OTHER_PAGES = {
    "current offers in the shop in paris": "it speaks of offers",
    "what is in the current bill": "it speaks of a bill",
    "weather in paris, france": "that page was not among the results of this search",
    "paris, france: the weather at 7:00": "that page was not among the results of this search",
}
WORDS = {"none": 0, "no": 0, "one": 1, "first": 1, "two": 2, "second": 2, "three": 3, "third": 3}


def _count(value: Any) -> int | None:
    """A whole number, also from "one", "step 2" or "picture_1"; None if it is none."""
    text = str(value).strip().casefold().removesuffix(".0")
    digits = re.findall(r"\d+", text)
    if digits:
        return int(digits[0]) if len(digits) == 1 else None
    named = [number for word, number in WORDS.items() if word in text.split()]
    return named[0] if len(named) == 1 else None


@exercise(
    "08.2",
    title="Read three traces",
    hints=[
        'Weather: print(to_read["weather"].steps[0].observation). A page begins with its title in '
        "square brackets.",
        "Car: the calls stand in the trace, each with what came back; the answer is no call.",
        "Script: a step that ended with an error did not run to its end. Take the first other one.",
    ],
)
def read_traces(answer: Any) -> Feedback:
    given = _wants(answer, KEYS)
    page = str(given["weather"]).strip().strip("[]?.\"'« »").casefold()
    pictures, step = _count(given["car"]), _count(given["script"])
    if page in OTHER_PAGES:
        return wrong(f"weather: not that one, {OTHER_PAGES[page]}.")
    if page != PAGE:
        return wrong(f"weather: no page that came back has the title {short(given['weather'])}.")
    if pictures == 0:
        return wrong("car: so the answer says. Look at the calls, not at the answer.")
    if pictures != 1:
        return wrong(f"car: the trace does not show {short(given['car'])}. Count the calls.")
    if step == 1:
        return wrong("script: step 1 printed the three numbers, and then ended with an error.")
    if step == 3:
        return wrong("script: step 3 did run to its end, but it was not the first.")
    if step == 4:
        return wrong("script: that is the answer at the step limit; nothing was run there.")
    if step != 2:
        return wrong(f"script: {short(given['script'])} is no step that ran to its end.")
    return right(
        "A page about something else, a picture that the answer denies, a script that ran two "
        "steps before the run ended. The claim check is silent about all three; the first two "
        "are bad runs."
    )


# -- 08.3: numbers that nobody observed ------------------------------------------------------------

CASES: list[tuple[str, list[str], list[str], str]] = [
    ("5 of 9.", ["5", "4"], ["9"], "only the 9 was never observed"),
    ("Clear, 13 to 16 °C.", ["13 °C and partly cloudy", "clear, +16 °C"], [], "both were observed"),
    (
        "Mostly cloudy, around 15°C.",
        ["NameError: name 'weather_api' is not defined"],
        ["15"],
        "nothing with 15 was observed",
    ),
    ("It is 3 °C.", ["It is 13 °C."], ["3"], "13 is not 3, although a 3 stands in it"),
    ("It is 1.5 m.", ["It is 1.5 m high."], [], "1.5 is one number, and it was observed"),
    ("It is 1.5 m.", ["1 of 5 pages"], ["1.5"], "1 and 5 were observed, 1.5 was not"),
    ("It is 13 °C.", ["1 page", "3 pages"], ["13"], "1 and 3 in two observations are not 13"),
    ("It is 5 m.", ["It is 1.5 m high."], ["5"], "1.5 is not 5, although a 5 stands in it"),
    ("It is 13 m.", ["It is 130 m high."], ["13"], "130 is not 13, although a 13 stands in it"),
    ("It is sunny.", ["13 °C"], [], "the answer has no number"),
    ("7 or 8.", [], ["7", "8"], "nothing was observed at all"),
]


def _numbers(found: Any) -> list[str]:
    if found is ...:
        raise AnswerFailed(OPEN)
    if isinstance(found, bool | str) or not isinstance(found, list | tuple | set | frozenset):
        raise AnswerFailed(
            wrong(f"unsupported should return a list of the numbers, not {describe(found)}.")
        )
    return sorted({f"{each:g}" if isinstance(each, float) else str(each) for each in found})


@exercise(
    "08.3",
    title="Numbers that nobody observed",
    hints=[
        'Numbers of a text: re.findall(r"\\d+(?:\\.\\d+)?", text).',
        "Collect the numbers of all observations first, each observation by itself.",
        "Then keep those of the answer that are not among them: compare whole numbers.",
    ],
)
def unsupported(answer: Any) -> Feedback:
    for text, observations, expected, why in CASES:
        found = _numbers(call(answer, text, list(observations)))
        if found == sorted(expected):
            continue
        seen = ", ".join(found) or "none"
        case = f"Answer {text!r}, observations {short(observations)}: yours names {seen}"
        supported = sorted(set(_all_numbers(text)) - set(expected))
        if found == supported and supported:
            return wrong(f"{case}. Those are the supported ones; wanted are the others.")
        return wrong(f"{case}, but {why}.")
    return right("It compares whole numbers with everything that was observed.")


def _all_numbers(text: str) -> list[str]:
    words = "".join(c if c.isdigit() or c == "." else " " for c in text).split()
    return [word.strip(".") for word in words if word.strip(".")]


# -- 08.4: look first, then draw -------------------------------------------------------------------


class _Desk:
    """Tools that keep what they were called with."""

    def __init__(self, broken: bool = False) -> None:
        self.searched: list[str] = []
        self.calculated: list[str] = []
        self.drawn: list[str] = []
        self.broken = broken

    def web_search(self, query: str) -> str:
        if self.broken:
            raise TimeoutError("the search does not answer")
        self.searched.append(query)
        return f"pages about {query}"

    def calculator(self, expression: str) -> str:
        self.calculated.append(expression)
        return f"the value of {expression}"

    def image_generator(self, prompt: str) -> str:
        self.drawn.append(prompt)
        return f"picture_{len(self.drawn)}"

    def tools(self) -> dict[str, Callable[[str], str]]:
        tools = [self.web_search, self.calculator, self.image_generator]
        return {tool.__name__: tool for tool in tools}


def _handler(answer: Any, desk: _Desk) -> Callable[..., Any]:
    handler = call(answer, desk.tools())
    if handler is ...:
        raise AnswerFailed(OPEN)
    if not callable(handler):
        raise AnswerFailed(wrong(f"look_first should return a function, not {describe(handler)}."))
    return handler


def _refused(handler: Callable[..., Any], *request: Any) -> bool:
    try:
        result = handler(*request)
    except Exception:
        return True
    if result is ...:
        raise AnswerFailed(OPEN)
    return False


@exercise(
    "08.4",
    title="Look first, then draw",
    hints=[
        "tools[name](*args, **kwargs) passes a call on.",
        "Refuse by raising an exception; its sentence is what the model reads.",
        "Remember a search only after it has returned: found.append(name), found being a list of "
        "the outer function.",
    ],
)
def look_first(answer: Any) -> Feedback:
    desk = _Desk()
    handler = _handler(answer, desk)
    if not _refused(handler, "image_generator", ["a car"], {}):
        if desk.drawn:
            return wrong("A picture was drawn although nothing had been looked up.")
        return wrong(
            "Nothing was drawn, but the model was not told so: raise an exception that says why."
        )
    if desk.drawn:
        return wrong("It refuses, but only after the picture was drawn. Decide before the call.")
    found = call(handler, "web_search", [], {"query": "Bond car"})
    if found is ...:
        return OPEN
    if desk.searched != ["Bond car"] or found != "pages about Bond car":
        return wrong(
            "A search should be passed on with its arguments (args and kwargs) and its result "
            f"returned; yours returned {short(found)}."
        )
    if _refused(handler, "image_generator", [], {"prompt": "Aston Martin DB5"}):
        return wrong("After a search has succeeded, the picture should be drawn.")
    if desk.drawn != ["Aston Martin DB5"]:
        return wrong("The picture maker should get its prompt, also as a keyword argument.")
    if (drawn := call(handler, "image_generator", ["Aston Martin DB5"], {})) != "picture_2":
        return wrong(
            "The model never learns the picture's name: return what the picture maker returned "
            f"('picture_2'); yours returned {short(drawn)}."
        )
    return _other_desks(answer) or right("The order is now a rule of the program, not a wish.")


def _other_desks(answer: Any) -> Feedback | None:
    fresh = _Desk()
    if not _refused(_handler(answer, fresh), "image_generator", ["a car"], {}):
        return wrong("A second run draws at once: keep what was found inside of look_first.")
    if fault := _other_tools(answer):
        return fault
    broken = _Desk(broken=True)
    handler = _handler(answer, broken)
    _refused(handler, "web_search", ["Bond car"], {})
    if not _refused(handler, "image_generator", ["a car"], {}):
        return wrong("A search that failed has found nothing, and yet a picture was drawn.")
    return None


def _other_tools(answer: Any) -> Feedback | None:
    desk = _Desk()
    handler = _handler(answer, desk)
    if _refused(handler, "calculator", ["6 * 7"], {}) or desk.calculated != ["6 * 7"]:
        return wrong(
            "Other tools should work at any time: a call of 'calculator' before the search was "
            "not passed on."
        )
    if call(handler, "calculator", ["1 + 1"], {}) != "the value of 1 + 1":
        return wrong("The result of other tools ('calculator') should be returned as well.")
    if not _refused(handler, "image_generator", ["a car"], {}):
        return wrong("After a call of 'calculator' it draws, although nothing was looked up.")
    return None


def _wants(answer: Any, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(answer, Mapping):
        raise AnswerFailed(
            wrong(f"Give a dict with the keys {', '.join(keys)}, not {describe(answer)}.")
        )
    missing = [key for key in keys if key not in answer]
    if missing:
        raise AnswerFailed(partly(f"Still missing: {', '.join(missing)}."))
    if ... in [answer[key] for key in keys]:
        raise AnswerFailed(OPEN)
    return answer
