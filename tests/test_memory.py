"""Counting is exact, trimming keeps its rules, and both agree with the library."""

import hashlib
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from course_utils import messages as m
from course_utils.errors import CourseError
from course_utils.memory import (
    BudgetTooSmall,
    NotAdditive,
    NotAnAnswer,
    Rules,
    TokenCounter,
    as_message,
    checked_answer,
    count_tokens,
    explain,
    shorten_results,
    trim,
)
from course_utils.messages import Message, ToolCall
from course_utils.models import load
from course_utils.models.tokenizer import TOKENIZERS, tokenizer
from course_utils.tools import Tool

MODELS = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")
TOK = tokenizer("qwen2.5-coder")
COUNTER = TokenCounter(TOK)
LOOK = Tool("look", "Look at a place.", {"type": "object", "properties": {}}, None)
CLASSIC = [
    m.system("you're a good assistant"),
    m.user("hi! I'm bob"),
    m.assistant("hi!"),
    m.user("I like vanilla ice cream"),
    m.assistant("nice"),
    m.user("whats 2 + 2"),
    m.assistant("4"),
    m.user("thanks"),
    m.assistant("no problem!"),
    m.user("having fun?"),
    m.assistant("yes!"),
]
# The worked example: a system message of 10 tokens and seven messages.
TOY_COSTS = [10, 6, 5, 12, 20, 7, 9, 6]
TOY = [
    Message(role, str(number))
    for number, role in enumerate(["system"] + ["user", "assistant"] * 3 + ["user"])
]


def toy_count(messages):
    return sum(TOY_COSTS[int(message.content)] for message in messages)


def call(id="call_1", text=""):
    return m.assistant(text, (ToolCall(id, "look", {"at": "x"}),))


def result(id="call_1", text="nothing to see"):
    return Message("tool", text, tool_call_id=id)


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "",
            "\n",
            " \n\n",
            "<|im_end|>",
            "<|im_start|>user\n",
            "</tool_response>",
            "Привет, 世界 👩‍👩‍👧",
            "e\u0301",
        ]
    ),
)


@st.composite
def messages_of_any_kind(draw):
    role = draw(st.sampled_from(m.ROLES))
    calls = ()
    if role == "assistant":
        names = draw(st.lists(st.sampled_from(["look", "find"]), max_size=2))
        calls = tuple(
            ToolCall(f"call_{i}", name, {"at": draw(TEXTS)}) for i, name in enumerate(names)
        )
    return Message(role, draw(TEXTS), calls)


# --- counting -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@given(conversation=st.lists(messages_of_any_kind(), min_size=1, max_size=8), tools=st.booleans())
@settings(max_examples=80, deadline=None)
def test_count_is_the_length_of_the_rendered_prompt(name, conversation, tools):
    model = load(name, "recorded")
    offered = [LOOK] if tools else None
    prompt = model.render(conversation, offered)
    assert count_tokens(conversation, model.tokenizer, offered) == len(model.encode(prompt))


def test_count_without_the_reply_marker():
    marker = TOK.encode("<|im_start|>assistant\n")
    whole = count_tokens(CLASSIC, TOK)
    assert whole - count_tokens(CLASSIC, TOK, generation_prompt=False) == len(marker)


@pytest.mark.parametrize("tools", [None, [LOOK]])
@given(conversation=st.lists(messages_of_any_kind(), min_size=1, max_size=8))
@example([Message("system", "ends with a break\n"), Message("tool", "\n"), Message("tool", "")])
@settings(max_examples=100, deadline=None)
def test_counting_in_parts_gives_the_whole(tools, conversation):
    counter = TokenCounter(TOK, tools)
    assert counter.whole(conversation) == count_tokens(conversation, TOK, tools)
    assert counter.check(conversation) == counter.fixed(conversation) + counter(conversation)


def test_costs_of_the_classic_example():
    assert COUNTER.costs(CLASSIC) == [10, 10, 7, 10, 6, 12, 6, 6, 8, 8, 7]
    assert (COUNTER(CLASSIC), COUNTER.whole(CLASSIC)) == (90, 93)


def test_three_kinds_of_messages_count_the_same():
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    calls = [{"name": "look", "args": {"at": "x"}, "id": "c"}]
    foreign = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "Look "}, "there."]),
        AIMessage("", tool_calls=calls),
        ToolMessage("a door", tool_call_id="c", name="look"),
    ]
    ours = [
        m.system("Be brief."),
        m.user("Look there."),
        m.assistant("", (ToolCall("c", "look", {"at": "x"}),)),
        Message("tool", "a door", tool_call_id="c", name="look"),
    ]
    assert [as_message(message) for message in foreign] == ours
    assert count_tokens([message.to_dict() for message in ours], TOK) == count_tokens(ours, TOK)


class OddTokenizer:
    """One token a character, and a template of one's own choice."""

    def __init__(self, template):
        self.template = template

    def render(self, messages, tools=None, generation_prompt=True):
        return self.template(messages)

    def encode(self, text):
        return list(text)


@pytest.mark.parametrize(
    "template",
    [
        lambda ms: "".join(f"{i}:{x.content}" * i for i, x in enumerate(ms)),  # numbers them
        lambda ms: "".join(x.content for x in ms[-3:]),  # leaves old ones out
        lambda ms: "".join(x.content.strip() if x is ms[-1] else x.content for x in ms),
        lambda ms: "".join(x.content for x in ms) + "!" * any(x.tool_calls for x in ms),
    ],
)
def test_a_template_that_is_not_additive_is_refused(template):
    with pytest.raises(NotAdditive, match="not additive"):
        TokenCounter(OddTokenizer(template))


def test_check_finds_what_the_probe_could_not():
    def template(messages):
        return "".join(x.content for x in messages) + "!" * ("odd" in messages[-1].content)

    odd = TokenCounter(OddTokenizer(template))
    assert odd.check([m.system("s"), m.user("ab")]) == 3
    with pytest.raises(NotAdditive, match="7 tokens, rendered as a whole 6"):
        odd.check([m.system("s"), m.user("odd"), m.user("ab")])


@pytest.mark.parametrize(
    ("conversation", "words"),
    [
        ([], "conversation is empty"),
        ("Hi", "list of messages"),
        (m.user("Hi"), "list of messages"),
        ([3], "not a int"),
        ([{"role": "user", "content": 3}], "content must be text"),
        (None, "not a NoneType"),
        ([m.user("half an emoji: \ud83d")], "valid text"),
    ],
)
def test_what_is_no_conversation_is_refused(conversation, words):
    with pytest.raises(CourseError, match=words):
        count_tokens(conversation, TOK)


@pytest.mark.parametrize(
    ("tokenizer", "tools", "words"),
    [
        (type("Model", (), {"tokenizer": TOK, "render": None})(), None, "pass model.tokenizer"),
        (object(), None, "pass model.tokenizer"),
        (TOK, {"type": "function"}, "put it in"),
        (TOK, [len], "not a builtin_function_or_method"),
    ],
)
def test_what_is_no_tokenizer_and_no_tool_list_is_refused(tokenizer, tools, words):
    for counting in (
        lambda: count_tokens([m.user("Hi")], tokenizer, tools),
        lambda: TokenCounter(tokenizer, tools),
    ):
        with pytest.raises(CourseError, match=words):
            counting()


@pytest.mark.parametrize("action", [trim, shorten_results])
@pytest.mark.parametrize(
    ("history", "budget", "count", "words"),
    [
        (None, 45, len, "not a NoneType"),
        ("Hi", 45, len, "not a single one"),
        (m.user("Hi"), 45, len, "not a single one"),
        ({"role": "user", "content": "Hi"}, 45, len, "not a single one"),
        (iter([m.user("Hi")]), 45, len, "not a list_iterator"),
        ([m.user("Hi")], None, len, "number of tokens, not None"),
        ([m.user("Hi")], "45", len, "number of tokens, not '45'"),
        ([m.user("Hi")], float("inf"), len, "not inf"),
        ([m.user("Hi")], 45, TOK, "not a CourseTokenizer"),
        ([m.user("Hi")], 45, None, "not a NoneType"),
    ],
)
def test_what_cannot_be_trimmed_is_named(action, history, budget, count, words):
    with pytest.raises(CourseError, match=words):
        action(history, budget, count)


def test_a_picture_is_refused():
    from langchain_core.messages import HumanMessage, RemoveMessage

    with pytest.raises(CourseError, match="block of type image_url"):
        as_message(HumanMessage([{"type": "image_url", "image_url": "x"}]))
    with pytest.raises(CourseError, match="type 'remove'"):
        as_message(RemoveMessage("1"))


# --- trimming -------------------------------------------------------------------------------


def test_the_worked_example():
    kept = trim(TOY, 52, toy_count)
    assert [message.content for message in kept] == ["0", "5", "6", "7"]
    assert toy_count(kept) == 32
    steps = explain(TOY, TOY_COSTS, 52)
    assert [step.index for step in steps if step.kept] == [0, 5, 6, 7]
    assert sum(step.kept_tokens for step in steps) == 32
    assert (steps[4].total, steps[4].why) == (52, "dropped: its question was cut off")
    assert (steps[3].total, steps[3].why) == (64, "dropped: would make 64 of 52")


@pytest.mark.parametrize(
    ("budget", "kept"), [(90, 11), (89, 9), (57, 7), (56, 5), (45, 5), (39, 5), (38, 3), (25, 3)]
)
def test_the_classic_example(budget, kept):
    assert len(trim(CLASSIC, budget, COUNTER)) == kept
    # With the fixed part on both sides, the rendered whole decides the same.
    assert len(trim(CLASSIC, budget + 3, load(mode="recorded").count)) == kept


def histories(tool_pairs=True):
    turn = [st.just([m.assistant("ok")])]
    if tool_pairs:
        turn += [
            st.just([call(), result(), m.assistant("done")]),
            st.just([call("a"), result("a"), call("b"), result("b")]),
            st.just([call()]),
            st.just([result("lost")]),
        ]
    users = TEXTS.map(m.user)
    pieces = st.one_of(users.map(lambda u: [u]), *turn)
    bodies = st.lists(pieces, max_size=12).map(lambda ps: [x for p in ps for x in p])
    heads = st.one_of(st.just([]), TEXTS.map(lambda text: [m.system(text)]))
    return st.tuples(heads, bodies).map(lambda pair: pair[0] + pair[1])


def brute_force(history, budget, count):
    """The definition: the longest tail that keeps every rule, looked for from the longest on."""
    head = history[:1] if history and history[0].role == "system" else []
    for start in range(len(head), len(history) + 1):
        tail = history[start:]
        if not tail and len(history) > len(head):
            return None
        if tail and tail[0].role != "user":
            continue
        open_calls, torn = set(), False
        for message in tail:
            open_calls |= {c.id for c in message.tool_calls}
            torn = torn or (message.role == "tool" and message.tool_call_id not in open_calls)
        if not torn and (not head + tail or count(head + tail) <= budget):
            return head + tail
    return None


@given(history=histories(), budget=st.integers(0, 200))
@settings(max_examples=400, deadline=None)
def test_trim_is_the_longest_tail_that_keeps_the_rules(history, budget):
    # Ids repeat, so that the nearest call must be the one that counts; made unique for the judge.
    expected = brute_force(history, budget, COUNTER)
    try:
        kept = trim(history, budget, COUNTER)
    except CourseError:
        kept = None
    assert kept == expected


@given(history=histories(), budget=st.integers(0, 200))
@settings(max_examples=200, deadline=None)
def test_explain_keeps_what_trim_keeps(history, budget):
    costs = COUNTER.costs(history) if history else []
    steps = explain(history, costs, budget)
    try:
        kept = trim(history, budget, COUNTER)
    except CourseError:
        return
    assert [history[step.index] for step in steps if step.kept] == kept


def random_history(rng):
    history = [m.system("Be brief." * rng.randint(0, 3))] if rng.random() < 0.7 else []
    history.append(m.user("Hi"))  # so that there is always a turn to keep
    for _ in range(rng.randint(0, 14)):
        kind = rng.random()
        words = " ".join(rng.choices(["yes", "Moscow", "ветер", "🙂", "\n"], k=rng.randint(0, 9)))
        if kind < 0.4:
            history.append(m.user(words))
        elif kind < 0.8:
            history.append(m.assistant(words))
        else:
            history += [call(), result(text=words), result(text="more")]
    return history


def to_langchain(message):
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    if message.role == "tool":
        return ToolMessage(message.content, tool_call_id=message.tool_call_id)
    if message.role == "assistant":
        calls = [{"name": c.name, "args": c.arguments, "id": c.id} for c in message.tool_calls]
        return AIMessage(message.content, tool_calls=calls)
    return (SystemMessage if message.role == "system" else HumanMessage)(message.content)


def library_trim(history, budget, counter):
    from langchain_core.messages import trim_messages

    return trim_messages(
        history,
        max_tokens=budget,
        token_counter=counter,
        strategy="last",
        include_system=True,
        start_on="human",
    )


def test_trim_agrees_with_the_library_on_thousands_of_histories():
    rng = random.Random(5)
    compared = dropped = 0
    while compared < 3000:
        history = [to_langchain(message) for message in random_history(rng)]
        budget = rng.randint(10, 150)
        fixed = COUNTER.fixed(history)
        try:
            ours = trim(history, budget + fixed, COUNTER.whole)
        except BudgetTooSmall as error:
            # The library answers with the system message alone, or with nothing.
            assert [x.type for x in library_trim(history, budget, COUNTER)] in ([], ["system"])
            assert trim(history, error.needed, COUNTER.whole)
            continue
        assert ours == library_trim(history, budget, COUNTER)
        compared += 1
        dropped += len(ours) < len(history)
    assert dropped > 1000


def test_counting_parts_by_the_template_is_the_librarys_pitfall():
    history = [to_langchain(message) for message in CLASSIC]

    def in_parts(messages: list) -> int:
        return count_tokens(messages, TOK)

    assert len(library_trim(history, 45, in_parts)) == 1
    assert len(library_trim(history, 45, COUNTER)) == 5


def test_the_library_leaves_an_orphan_where_trim_does_not():
    history = [m.user("Look."), call(), m.user("Well?"), result(), m.user("And?"), m.assistant("x")]
    budget = COUNTER(history[2:])
    foreign = library_trim([to_langchain(x) for x in history], budget, COUNTER)
    assert [x.type for x in foreign] == ["human", "tool", "human", "ai"]
    assert trim(history, budget, COUNTER) == history[4:]


@pytest.mark.parametrize(
    ("history", "budget", "needed", "words"),
    [
        (TOY, 15, 16, "the system message and the newest user turn need 16. Give at least 16"),
        (TOY[1:], 5, 6, "the newest user turn needs 6"),
        (TOY[:1], 9, 10, "the system message needs 10"),
        (TOY[:1], -1, 10, "budget of -1 tokens"),
    ],
)
def test_too_small_a_budget_says_what_would_fit(history, budget, needed, words):
    with pytest.raises(BudgetTooSmall, match=words) as raised:
        trim(history, budget, toy_count)
    assert raised.value.needed == needed
    assert trim(history, needed, toy_count)


def test_one_huge_message_is_never_cut():
    huge = m.user("word " * 20_000)
    assert trim([m.user("Hi"), huge], 30_000, COUNTER) == [m.user("Hi"), huge]
    assert trim([huge, m.assistant("?"), m.user("Hi")], 100, COUNTER) == [m.user("Hi")]
    with pytest.raises(BudgetTooSmall) as raised:
        trim([m.user("Hi"), huge], 100, COUNTER)
    assert raised.value.needed == COUNTER([huge])


def test_a_history_that_ends_in_results_keeps_their_calls():
    history = [
        m.user("a"),
        m.assistant("b"),
        m.user("Look."),
        call(),
        result(),
        call("2"),
        result("2"),
    ]
    assert trim(history, COUNTER(history[2:]), COUNTER) == history[2:]
    with pytest.raises(BudgetTooSmall):
        trim(history, COUNTER(history[2:]) - 1, COUNTER)


def test_ids_may_repeat_in_later_turns():
    history = [m.user("a"), call(), result(), m.user("b"), call(), result(), m.assistant("c")]
    assert trim(history, COUNTER(history[3:]), COUNTER) == history[3:]


def test_a_result_without_an_id_belongs_to_the_calls_before_it():
    anonymous = Message("tool", "a door")
    history = [m.user("a"), call(), m.user("b"), anonymous, m.user("c")]
    assert trim(history, COUNTER(history[2:]), COUNTER) == history[4:]


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ([m.assistant("Hello")], "it has no user message"),
        ([m.system("s"), m.assistant("Hello")], "it has no user message"),
        ([m.user("Hi"), result()], "a tool result in it answers no call"),
        ([result(), result()], "it has no user message"),
    ],
)
def test_a_history_that_cannot_be_sent_is_refused(history, words):
    with pytest.raises(CourseError, match=words):
        trim(history, 1000, COUNTER)


def test_the_empty_and_the_system_only_history():
    assert trim([], 0, COUNTER) == []
    assert trim([m.system("s")], 100, COUNTER) == [m.system("s")]
    assert shorten_results([], 0, COUNTER) == []
    assert explain([], [], 10) == []


def test_empty_messages_cost_their_frame_and_are_kept_or_dropped_like_others():
    history = [m.user(""), m.assistant(""), m.user("")]
    assert COUNTER(history) == 3 * COUNTER([m.user("")])
    assert trim(history, COUNTER(history) - 1, COUNTER) == [m.user("")]


def test_only_as_much_is_counted_as_fits():
    counted = []

    def count(messages):
        counted.append(len(messages))
        return len(messages)

    history = [m.user("a"), m.assistant("b")] * 50_000
    assert trim(history, 21, count) == history[-20:]
    assert max(counted) < 100
    assert len(counted) < 20


def test_what_is_dropped_is_not_even_looked_at():
    class Untouchable:
        @property
        def type(self):
            raise AssertionError("looked at")

    history = [m.user("Hi"), *[Untouchable()] * 1000, *[m.user("a"), m.assistant("b")] * 200]
    assert trim(history, 21, len) == history[-20:]


@given(
    costs=st.lists(st.integers(0, 1000), min_size=1, max_size=60),
    budget=st.integers(0, 5000),
)
@settings(max_examples=300, deadline=None)
def test_the_search_finds_the_best_in_few_steps(costs, budget):
    history = [m.user(str(number)) for number in range(len(costs))]
    asked = []

    def count(messages):
        asked.append(len(messages))
        return sum(costs[int(message.content)] for message in messages)

    fitting = [n for n in range(1, len(costs) + 1) if sum(costs[-n:]) <= budget]
    if not fitting:
        with pytest.raises(BudgetTooSmall):
            trim(history, budget, count)
    else:
        assert len(trim(history, budget, count)) == fitting[-1]
        assert len(asked) <= 3 + 4 * len(costs).bit_length()


def test_the_input_is_left_alone():
    history = list(CLASSIC)
    trim(history, 45, COUNTER)
    assert history == CLASSIC


# --- explaining, shortening, guarding -------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "kept_tokens"),
    [
        ({}, [10, 0, 0, 0, 0, 7, 9, 6]),
        ({"start_with_user": False}, [10, 0, 0, 0, 20, 7, 9, 6]),
        ({"keep_system": False}, [0, 0, 0, 0, 0, 7, 9, 6]),
        ({"newest_first": False}, [10, 6, 5, 12, 0, 0, 0, 0]),
        ({"newest_first": False, "whole_messages": False}, [10, 6, 5, 12, 19, 0, 0, 0]),
        ({"keep_system": False, "start_with_user": False}, [0, 0, 0, 0, 20, 7, 9, 6]),
        (
            {"whole_messages": False, "keep_system": False, "start_with_user": False},
            [0, 0, 0, 10, 20, 7, 9, 6],
        ),
    ],
)
def test_each_rule_can_be_switched_off(off, kept_tokens):
    steps = explain(TOY, TOY_COSTS, 52, Rules(**off))
    assert [step.kept_tokens for step in steps] == kept_tokens


def test_explain_shows_the_orphan_when_pairs_may_part():
    history = [m.user("a"), call(), result(), m.assistant("b")]
    costs = [5, 5, 5, 5]
    loose = explain(history, costs, 10, Rules(start_with_user=False, keep_pairs=False))
    assert [step.kept for step in loose] == [False, False, True, True]
    firm = explain(history, costs, 10, Rules(start_with_user=False))
    assert [step.kept for step in firm] == [False, False, False, True]
    assert firm[2].why == "dropped: call and result stay together"


def test_explain_wants_one_cost_a_message():
    with pytest.raises(CourseError, match="8 messages need as many costs, not 1"):
        explain(TOY, [1], 10)
    with pytest.raises(CourseError, match="not None"):
        explain(TOY, [1] * 8, None)
    with pytest.raises(CourseError, match="not 'a'"):
        explain(TOY, ["a"] * 8, 10)


LONG = "It is a very long page about nothing in particular. " * 10


def test_old_results_are_shortened_first_and_as_few_as_needed():
    history = [m.user("Look.")]
    for number in "123":
        history += [call(number), result(number, LONG)]
    history.append(m.assistant("Done."))
    whole = COUNTER(history)
    assert shorten_results(history, whole, COUNTER) == history
    one = shorten_results(history, whole - 1, COUNTER)
    assert [len(x.content) < 60 for x in one if x.role == "tool"] == [True, False, False]
    assert one[2].content == f"[result of {len(LONG)} characters left out]"
    assert one[2].tool_call_id == "1"
    two = shorten_results(history, COUNTER(one) - 1, COUNTER)
    assert [len(x.content) < 60 for x in two if x.role == "tool"] == [True, True, False]
    with pytest.raises(BudgetTooSmall) as raised:
        shorten_results(history, COUNTER(two) - 1, COUNTER)
    assert raised.value.needed == COUNTER(two)
    none = shorten_results(history, COUNTER(two) - 1, COUNTER, keep=0)
    assert all(len(x.content) < 60 for x in none if x.role == "tool")


def test_shortening_works_on_dicts_and_langchain_messages_and_leaves_short_results():
    history = [m.user("Look."), call("1"), result("1", "a door"), call("2"), result("2", LONG)]
    as_dicts = [message.to_dict() for message in history]
    foreign = [to_langchain(message) for message in history]
    budget = COUNTER(history) - 50
    for kind in (history, as_dicts, foreign):
        short = [as_message(x) for x in shorten_results(kind, budget, COUNTER, keep=0)]
        assert [x.content[:10] for x in short if x.role == "tool"] == ["a door", "[result of"]
        assert as_message(kind[4]).content == LONG


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<|im_start|>system\nHi", r"control token <\|im_start\|>"),
        ("Bob.<|im_end|>", r"control token <\|im_end\|>"),
        ("Bob.<|im_end|>\n<|im_start|>system\nHi", r"control token <\|im_start\|>"),
        ('<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>', "tool call"),
        ("def f():<|fim_middle|>", r"control token <\|fim_middle\|>"),
        ('<tool_call>\n{"name": "look", ', "broken tool call"),
        ("<tool_response>\na door\n</tool_response>", "tool's result"),
        (" \n", "is empty"),
        ("The prompt. Bob.", "begins with its whole prompt"),
    ],
)
def test_what_is_no_answer_is_not_stored(text, words):
    with pytest.raises(NotAnAnswer, match=words):
        checked_answer(text, "The prompt.")


@pytest.mark.parametrize(("text", "prompt"), [(None, None), (m.assistant("Hi"), None), ("x", [1])])
def test_what_is_no_text_is_no_answer(text, prompt):
    with pytest.raises(CourseError, match=r"pass reply\.text"):
        checked_answer(text, prompt)


def test_an_answer_is_returned_as_it_is():
    assert checked_answer("Your name is Bob.", "What is my name?") == "Your name is Bob."
    for text in ('{"name": "Bob"}', "a <| b |> c, and 1 < 2"):
        assert checked_answer(text) == text


# --- the vocabulary of another model --------------------------------------------------------

# As OpenAI's own loader checks them (tiktoken, `openai_public.py`).
GPT2 = {
    "vocab.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "merges.txt": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}


@pytest.mark.parametrize("name", GPT2)
def test_the_gpt2_vocabulary_is_the_published_one(name):
    data = (TOKENIZERS / "gpt2" / name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == GPT2[name]


def test_langchains_fallback_finds_the_vocabulary_without_a_network(monkeypatch):
    from langchain_core.language_models.base import get_tokenizer

    monkeypatch.chdir(TOKENIZERS)
    get_tokenizer.cache_clear()
    try:
        assert get_tokenizer().encode("hello world") == [31373, 995]
    finally:
        get_tokenizer.cache_clear()
