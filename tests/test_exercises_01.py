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
