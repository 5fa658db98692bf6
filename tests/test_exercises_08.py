"""The checks of notebook 08: right answers pass, wrong ones are told their own mistake."""

import re

from course_utils.exercises import check, hint, known
from course_utils.exercises.testing import assert_classifies


def test_every_exercise_has_three_hints():
    assert known("08") == ["08.1", "08.2", "08.3", "08.4"]
    for each in known("08"):
        assert len({hint(each).message for _ in range(3)}) == 3


def test_ellipsis_is_not_attempted():
    assert {check(each, ...).ok for each in known("08")} == {None}


def test_one_program():
    by_max = "final_answer(max(cities, key=get_temperature))"
    by_dict = (
        "seen = {city: get_temperature(city) for city in cities}\n"
        "print(seen)\nfinal_answer(max(seen, key=seen.get))"
    )
    by_loop = (
        "best, top = None, -999\nfor city in cities:\n    now = get_temperature(city)\n"
        "    if now > top:\n        best, top = city, now\nfinal_answer(best)"
    )
    fixed = by_dict.replace("in cities", "in ['Paris', 'Madrid', 'Moscow']")
    assert_classifies(
        "08.1",
        right=[by_max, by_dict, by_loop, by_max + "\nprint('never reached')"],
        wrong=[
            ("final_answer(max(get_temperature(city) for city in cities))", "the temperature"),
            ("print(max(cities, key=get_temperature))", "without final_answer"),
            ("final_answer('Madrid')", "never asks for Paris, Madrid, Moscow"),
            (fixed, "KeyError"),
            ("final_answer(min(cities, key=get_temperature))", "the coldest"),
            ("[get_temperature(c) for c in cities]\nfinal_answer(max(cities))", "the warmest is"),
            (by_loop.replace("top = city, now", "top = city, get_temperature(city)"), "calls for"),
            ("final_answer(max(cities, key=get_temperature)", "SyntaxError"),
            ("final_answer(warmest)", "NameError"),
            (max, "A program is text"),
            ("for city in cities[1:]:\n    get_temperature(city)\nfinal_answer('x')", "never asks"),
        ],
    )


PAGE = "What is my current plan?"


def test_read_a_trace():
    assert_classifies(
        "08.2",
        right=[
            {"weather": PAGE, "car": 1, "script": 2},
            {"weather": "[what is my current plan]", "car": "1", "script": "step 2"},
            {"weather": f" '{PAGE}' ", "car": 1.0, "script": 2.0},
            {"weather": PAGE, "car": "one", "script": "the second step"},
            {"weather": PAGE, "car": "picture_1", "script": "2nd"},
        ],
        wrong=[
            ({"weather": "What is in the current bill?", "car": 1, "script": 2}, "of a bill"),
            ({"weather": "Weather in Paris, France", "car": 1, "script": 2}, "not among"),
            ({"weather": "Current offers in the shop in Paris", "car": 1, "script": 2}, "offers"),
            ({"weather": "web_search", "car": 1, "script": 2}, "no page that came back"),
            ({"weather": PAGE, "car": 0, "script": 2}, "Look at the calls"),
            ({"weather": PAGE, "car": "none", "script": 2}, "Look at the calls"),
            ({"weather": PAGE, "car": 2, "script": 2}, "Count the calls"),
            ({"weather": PAGE, "car": 1, "script": 1}, "ended with an error"),
            ({"weather": PAGE, "car": 1, "script": 3}, "not the first"),
            ({"weather": PAGE, "car": 1, "script": 4}, "step limit"),
            ({"weather": PAGE, "car": 1, "script": 0}, "no step that ran"),
            ({"weather": PAGE, "car": 1, "script": "2 or 3"}, "no step that ran"),
            ({"weather": PAGE, "car": 1}, "missing: script"),
            ([PAGE, 1, 2], "dict with the keys"),
        ],
    )
    partly_open = {"weather": PAGE, "car": ..., "script": 2}
    assert check("08.2", partly_open).ok is None


NUMBER = re.compile(r"\d+(?:\.\d+)?")


def test_unsupported():
    def by_sets(answer, observations):
        seen = {number for text in observations for number in NUMBER.findall(text)}
        return [number for number in NUMBER.findall(answer) if number not in seen]

    def by_boundaries(answer, observations):
        return tuple(
            n
            for n in NUMBER.findall(answer)
            if not any(
                re.search(rf"(?<![\d.]){re.escape(n)}(?![\d]|\.\d)", o) for o in observations
            )
        )

    def substring(answer, observations):
        return [n for n in NUMBER.findall(answer) if not any(n in text for text in observations)]

    def joined(answer, observations):
        seen = NUMBER.findall("".join(text.split()[0] for text in observations))
        seen += [n for text in observations for n in NUMBER.findall(text)]
        return [n for n in NUMBER.findall(answer) if n not in seen]

    def word_boundaries(answer, observations):
        return [
            n
            for n in NUMBER.findall(answer)
            if not any(re.search(rf"\b{re.escape(n)}\b", text) for text in observations)
        ]

    def begins(answer, observations):
        seen = [n for text in observations for n in NUMBER.findall(text)]
        return [n for n in NUMBER.findall(answer) if not any(s.startswith(n) for s in seen)]

    def whole_only(answer, observations):
        seen = re.findall(r"\d+", " ".join(observations))
        return [n for n in re.findall(r"\d+", answer) if n not in seen]

    def first_only(answer, observations):
        return by_sets(answer, observations[:1])

    def supported(answer, observations):
        return [n for n in NUMBER.findall(answer) if n not in by_sets(answer, observations)]

    assert_classifies(
        "08.3",
        right=[
            by_sets,
            by_boundaries,
            lambda answer, observations: set(by_sets(answer, observations)),
            lambda answer, observations: [float(n) for n in by_sets(answer, observations)],
        ],
        wrong=[
            (substring, "13 is not 3"),
            (whole_only, "1.5 was not"),
            (word_boundaries, "1.5 is not 5"),
            (begins, "130 is not 13"),
            (first_only, "both were observed"),
            (supported, "those are the supported ones"),
            (joined, "are not 13"),
            (lambda answer, observations: NUMBER.findall(answer), "only the 9"),
            (lambda answer, observations: bool(by_sets(answer, observations)), "a list"),
            (lambda answer, observations: [], "only the 9"),
            (lambda answer: [], "TypeError"),
        ],
    )


def test_look_first():
    def right_one(tools):
        found = []

        def handler(name, args, kwargs):
            if name == "image_generator" and not found:
                raise PermissionError("Search first.")
            result = tools[name](*args, **kwargs)
            found.extend([name] if name == "web_search" else [])
            return result

        return handler

    class Remembers:
        def __init__(self, tools):
            self.tools, self.looked = tools, False

        def __call__(self, name, args, kwargs):
            assert self.looked or name != "image_generator", "Search first."
            result = self.tools[name](*args, **kwargs)
            self.looked = self.looked or name == "web_search"
            return result

    def by_nonlocal(tools):
        looked = False

        def handler(name, args, kwargs):
            nonlocal looked
            if name == "web_search":
                result = tools["web_search"](*args, **kwargs)
                looked = True
                return result
            if name == "image_generator" and not looked:
                raise ValueError("Call web_search before you draw.")
            return tools[name](*args, **kwargs)

        return handler

    def lets_all_through(tools):
        return lambda name, args, kwargs: tools[name](*args, **kwargs)

    def says_none(tools):
        return lambda name, args, kwargs: (
            tools[name](*args, **kwargs) if name == "web_search" else None
        )

    def never_draws(tools):
        def handler(name, args, kwargs):
            if name != "web_search":
                raise PermissionError("No.")
            return tools[name](*args, **kwargs)

        return handler

    def too_early(tools):
        found = []

        def handler(name, args, kwargs):
            found.append(name)
            if name == "image_generator" and "web_search" not in found:
                raise PermissionError("Search first.")
            return tools[name](*args, **kwargs)

        return handler

    def after_the_fact(tools):
        found = []

        def handler(name, args, kwargs):
            result = tools[name](*args, **kwargs)
            found.append(name)
            if name == "image_generator" and "web_search" not in found:
                raise PermissionError("Search first.")
            return result

        return handler

    def after_any_call(tools):
        found = []

        def handler(name, args, kwargs):
            if name == "image_generator" and not found:
                raise PermissionError("Search first.")
            result = tools[name](*args, **kwargs)
            found.append(name)
            return result

        return handler

    def two_tools_only(tools):
        inner = right_one(tools)
        return lambda name, args, kwargs: (
            inner(name, args, kwargs) if name in ("web_search", "image_generator") else None
        )

    def nothing_before_a_search(tools):
        found = []

        def handler(name, args, kwargs):
            if name != "web_search" and not found:
                raise PermissionError("Search first.")
            result = tools[name](*args, **kwargs)
            found.extend([name] if name == "web_search" else [])
            return result

        return handler

    def keeps_the_picture(tools):
        inner = right_one(tools)

        def handler(name, args, kwargs):
            result = inner(name, args, kwargs)
            return None if name == "image_generator" else result

        return handler

    shared = []

    def shares(tools):
        def handler(name, args, kwargs):
            if name == "image_generator" and not shared:
                raise PermissionError("Search first.")
            result = tools[name](*args, **kwargs)
            shared.append(name)
            return result

        return handler

    def no_keywords(tools):
        handler = right_one(tools)
        return lambda name, args, kwargs: handler(name, args or list(kwargs)[:1], {})

    assert_classifies(
        "08.4",
        right=[right_one, Remembers, by_nonlocal],
        wrong=[
            (lets_all_through, "nothing had been looked up"),
            (says_none, "raise an exception"),
            (never_draws, "the picture should be drawn"),
            (too_early, "A search that failed"),
            (after_the_fact, "before the call"),
            (after_any_call, "After a call of 'calculator'"),
            (two_tools_only, "not passed on"),
            (nothing_before_a_search, "at any time"),
            (keeps_the_picture, "never learns the picture's name"),
            (shares, "inside of look_first"),
            (no_keywords, "passed on with its arguments"),
            (lambda tools: tools["web_search"]("Bond"), "should return a function"),
        ],
    )
    assert check("08.4", lambda tools: lambda name, args, kwargs: ...).ok is None
