"""The checks of notebook 01 accept every right answer and name each mistake."""

import json

from course_utils.exercises import check
from course_utils.exercises.testing import assert_classifies

PRIDE = "first sentence of Pride and Prejudice"


def replace(reply, documents):
    return reply if documents.is_exact(reply) else documents.find_quote(reply)["quote"]


def replace_by_get(reply, documents):
    if not documents.is_exact(reply):
        reply = documents.find_quote(words=reply).get("quote")
    return reply


def replace_via_words(reply, documents):
    query = " ".join(reply.lower().split())
    return reply if documents.is_exact(reply) else documents.find_quote(query)["quote"]


def test_01_1():
    assert_classifies(
        "01.1",
        right=[replace, replace_by_get, replace_via_words],
        wrong=[
            (lambda r, d: r, "unchanged"),
            (lambda r, d: r if d.is_exact(r) else d.find_quote(r), '"quote"'),
            (lambda r, d: d.find_quote(r)["quote"], "only part of a sentence"),
            (lambda r, d: d.find_quote(r)["quote"] if d.is_exact(r) else r, "wrong way round"),
            (lambda r, d: r if d.is_exact(r) else d.find_quote(PRIDE)["quote"], "same sentence"),
            (lambda r, d: r if d.is_exact(r) else d.search(r), "list of pages"),
            (lambda r, d: r if d.is_exact(r) else d.search(r)[0]["text"], "another sentence"),
            (lambda r, d: r if d.is_exact(r) else r.replace("was", "is"), "stands in no page"),
            (lambda r, d: print(end=""), "not None"),
            ("It is a truth", "should be a function"),
        ],
    )


def test_01_1_the_stub_is_not_attempted():
    stub = lambda reply, documents: reply if documents.is_exact(reply) else ...  # noqa: E731
    assert check("01.1", stub).ok is None


def act(text, functions):
    try:
        call = json.loads(text)
    except json.JSONDecodeError:
        return None
    if not isinstance(call, dict) or not {"name", "arguments"} <= call.keys():
        return None
    if call["name"] not in functions:
        return f"unknown function {call['name']}"
    return str(functions[call["name"]](**call["arguments"]))


def act_with_one_try(text, functions):
    try:
        name, arguments = (json.loads(text)[key] for key in ("name", "arguments"))
    except (ValueError, KeyError, TypeError):
        return None
    function = functions.get(name)
    return f"{function(**arguments)}" if function else json.dumps({"unknown": name})


def act_with_match(text, functions):
    try:
        value = json.loads(text)
    except ValueError:
        return
    match value:
        case {"name": name, "arguments": arguments} if name in functions:
            return str(functions[name](**arguments))
        case {"name": name, "arguments": _}:
            return "no " + name


def twice(text, functions):
    act(text, functions)
    return act(text, functions)


def no_look(text, functions):
    call = json.loads(text)
    return str(functions[call["name"]](**call["arguments"]))


def no_try(text, functions):
    call = json.loads(text)
    if call["name"] not in functions:
        return call["name"]
    return str(functions[call["name"]](**call["arguments"]))


def no_type_check(text, functions):
    try:
        return no_try(text, functions)
    except json.JSONDecodeError:
        return None


def from_builtins(text, functions):
    import builtins

    try:
        call = json.loads(text)
    except ValueError:
        return None
    if not isinstance(call, dict) or "name" not in call:
        return None
    function = functions.get(call["name"]) or getattr(builtins, call["name"], None)
    return str(function(**call["arguments"])) if function else call["name"]


def unnamed(text, functions):
    result = act(text, functions)
    return "unknown function" if result and result.startswith("unknown") else result


def test_01_2():
    assert_classifies(
        "01.2",
        right=[act, act_with_one_try, act_with_match],
        wrong=[
            (lambda text, functions: text, "was not run"),
            (lambda text, functions: json.loads(text), "was not run"),
            (twice, "once only"),
            (lambda t, f: f[json.loads(t)["name"]](**json.loads(t)["arguments"]), "as text"),
            (lambda t, f: print(act(t, f), end="\r"), "return it"),
            (lambda t, f: json.dumps(no_look(t, f)), "expected"),
            (no_look, "KeyError"),
            (no_try, "is no JSON"),
            (no_type_check, "TypeError"),
            (from_builtins, "not in the dict"),
            (unnamed, "names it"),
            (lambda t, f: act(t, f) or "no call", "return None"),
            (act("", {}), "should be a function"),
        ],
    )


def test_01_2_the_stub_is_not_attempted():
    assert check("01.2", lambda text, functions: ...).ok is None


def ordered(message, results):
    by_id = {result["tool_call_id"]: result for result in results}
    nothing = {"role": "tool", "content": "no result"}
    ids = [call["id"] for call in message["tool_calls"]]
    return [by_id.get(each, {**nothing, "tool_call_id": each}) for each in ids]


def ordered_by_loops(message, results):
    found = []
    for call in message["tool_calls"]:
        for result in results:
            if result["tool_call_id"] == call["id"]:
                found.append(result)
                break
        else:
            missing = {"tool_call_id": call["id"], "role": "tool", "content": "no result"}
            found.append(missing)
    return found


def ordered_by_sorting(message, results):
    place = {call["id"]: number for number, call in enumerate(message["tool_calls"])}
    known = [result for result in results if result["tool_call_id"] in place]
    there = {result["tool_call_id"] for result in known}
    for each in place.keys() - there:
        known.append({"role": "tool", "tool_call_id": each, "content": "no result"})
    return tuple(sorted(known, key=lambda result: place[result["tool_call_id"]]))


def without_missing(message, results):
    return [each for each in ordered(message, results) if each["content"] != "no result"]


def with_strays(message, results):
    known = ordered(message, results)
    return known + [each for each in results if each not in known]


def missing_as(change):
    def answer(message, results):
        return [
            change(each) if each["content"] == "no result" else each
            for each in ordered(message, results)
        ]

    return answer


def relabelled(message, results):
    calls = message["tool_calls"]
    return [
        {**result, "tool_call_id": call["id"]} for call, result in zip(calls, results, strict=False)
    ]


def test_01_3():
    by_id = lambda m, r: sorted(r, key=lambda each: each["tool_call_id"])  # noqa: E731
    assert_classifies(
        "01.3",
        right=[ordered, ordered_by_loops, ordered_by_sorting],
        wrong=[
            (lambda m, r: r, "still come in the order"),
            (by_id, "by their ids"),
            (lambda m, r: r[::-1], "your results answer"),
            (lambda m, r: [each["content"] for each in ordered(m, r)], "whole tool messages"),
            (relabelled, "contents are not those"),
            (without_missing, "needs a message as well"),
            (with_strays, "leave it out"),
            (missing_as(lambda each: None), "not None"),
            (missing_as(lambda each: {**each, "role": "user"}), 'role "tool"'),
            (missing_as(lambda each: {**each, "content": ""}), '"no result"'),
            (missing_as(lambda each: {"role": "tool", "content": "no result"}), "id of its call"),
            (lambda m, r: [r[[c["id"] for c in m["tool_calls"]].index("x")]], "ValueError"),
            (lambda m, r: dict(enumerate(ordered(m, r))), "list of tool messages"),
        ],
    )


def test_01_3_the_stub_is_not_attempted():
    assert check("01.3", lambda message, results: ...).ok is None


FAULTS = {
    "arguments_not_text": 2,
    "arguments_cut_off": 6,
    "orphan_result": 4,
    "unsupported_answer": 5,
}


def test_01_4():
    assert_classifies(
        "01.4",
        right=[FAULTS, dict(reversed(FAULTS.items())), {k: [v] for k, v in FAULTS.items()}],
        wrong=[
            ({k: v - 1 for k, v in FAULTS.items()}, "one too low"),
            (FAULTS | {"orphan_result": 3}, "answers call b"),
            (FAULTS | {"orphan_result": 6}, "call without a result"),
            (FAULTS | {"unsupported_answer": 4}, "sentence that believes it"),
            (FAULTS | {"arguments_not_text": 6, "arguments_cut_off": 2}, "2 of 4"),
            (FAULTS | {"arguments_not_text": 1}, "does not have this fault"),
            (FAULTS | {"arguments_not_text": "a"}, "from 1 to 6"),
            ({"orphan_result": 4}, "no answer for"),
            (FAULTS | {"wrong_order": 3}, "none of the faults"),
            ([2, 6, 4, 5], "should be a dict"),
        ],
    )


def test_01_4_a_half_filled_dict_is_not_attempted():
    assert check("01.4", dict.fromkeys(FAULTS, ...)).ok is None
