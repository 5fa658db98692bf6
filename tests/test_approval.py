"""The gate: rules, decisions, audit trail, pause."""

import pytest
from agent_kit import LOOK, MAIL, PAY, asks, check_transcript, fault, says, world_tools

from course_utils.agent import Limits, decide, new_trace, pending, resume, run_agent
from course_utils.approval import (
    CAREFUL,
    Approved,
    Decision,
    Gate,
    Policy,
    abort,
    approve,
    audit,
    canonical,
    modify,
    reject,
    same_value,
)
from course_utils.errors import CourseError
from course_utils.models import scripted
from course_utils.tools import Tool
from course_utils.trace import Began, Observed, Replied, Trace
from course_utils.world.world import World


@pytest.fixture
def world():
    with World() as world:
        yield world


def make(effect="read", open_world=False, name="x"):
    return Tool(name, "X.", None, lambda: "ok", effect, open_world)


# -- rules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "tool", "rule"),
    [
        (CAREFUL, make("read"), "allow"),
        (CAREFUL, make("reversible"), "tell"),
        (CAREFUL, make("irreversible"), "ask"),
        (CAREFUL, make("read", open_world=True), "ask"),
        (Policy(), make("read"), "reject"),
        (Policy({"read": "allow"}), make("irreversible"), "reject"),
        (Policy({"read": "allow"}), make("read", open_world=True), "reject"),
        (Policy(open_world="allow"), make("read", open_world=True), "reject"),
        (Policy({"read": "reject"}, "allow"), make("read", open_world=True), "reject"),
        (Policy({"read": "reject"}, tools={"x": "allow"}), make("read"), "allow"),
        (Policy({"read": "allow"}, "allow", {"x": "ask"}), make("read", True), "ask"),
        (Policy({"read": "allow"}, tools={"y": "reject"}), make("read"), "allow"),
    ],
)
def test_the_rule_for_a_tool(policy, tool, rule):
    assert policy.rule_for(tool)[0] == rule


@pytest.mark.parametrize(
    "wrong", [{"effects": {"write": "ask"}}, {"effects": {"read": "maybe"}}, {"open_world": "no"}]
)
def test_a_policy_with_a_typing_mistake_is_refused(wrong):
    with pytest.raises(CourseError):
        Policy(**wrong)


@pytest.mark.parametrize("wrong", [{"action": "ok"}, {"action": "modify"}])
def test_a_decision_with_a_mistake_is_refused(wrong):
    with pytest.raises(CourseError):
        Decision(**wrong)


def test_equal_by_value():
    assert same_value({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0})
    for left, right in (({"a": 1}, {"a": True}), ({"a": 1}, {"a": "1"}), ({"a": [1]}, {"a": 1})):
        assert not same_value(left, right)
    assert canonical({"ж": float("nan")}) == canonical({"ж": float("nan")})


# -- decisions while the run waits in a function ---------------------------------------------------


def run(world, decision, *replies, **options):
    asked = []

    def ask(request):
        asked.append(request)
        return decision

    replies = replies or (asks(LOOK, PAY), says("Done."))
    done = run_agent(
        scripted(replies), world_tools(world), "Pay.", gate=Gate(CAREFUL, ask), **options
    )
    check_transcript(done.trace.messages)
    return done, asked


def test_only_what_the_rules_say_is_asked_and_approve_lets_it_run(world):
    done, asked = run(world, approve("checked", who="Ana"))
    assert [request.call.name for request in asked] == ["pay"]
    assert asked[0].rule == "irreversible: ask" and asked[0].call.arguments == PAY[1]
    assert world.count("payment") == 1 and done.answer == "Done."


def test_the_audit_trail_says_who_what_why_and_the_arguments(world):
    done, _ = run(world, modify({**PAY[1], "amount_eur": 3}, "too much", who="Ana"))
    look, pay = audit(done.trace)
    assert (look["who"], look["decision"]) == ("policy", "allow")
    assert (pay["who"], pay["decision"], pay["why"]) == ("Ana", "modify", "too much")
    assert pay["arguments"] == '{"invoice_id": "INV-004217", "amount_eur": 5}'
    assert pay["ran with"] == '{"invoice_id": "INV-004217", "amount_eur": 3}'
    assert [row["cents"] for row in world.effects()] == [300]
    assert "changed the arguments" in done.trace.messages[-2].content


def test_changed_arguments_that_do_not_fit_do_not_run(world):
    done, _ = run(world, modify({"amount_eur": "a lot"}))
    assert world.count() == 0 and fault(done.trace.messages[-2]) == "invalid_arguments"


def test_reject_tells_the_model_and_goes_on(world):
    done, _ = run(world, reject("wrong invoice", who="Ana"))
    assert world.count() == 0 and done.answer == "Done."
    assert fault(done.trace.messages[-2]) == "rejected"
    assert "wrong invoice" in done.trace.messages[-2].content


def test_abort_stops_and_leaves_no_call_open(world):
    done, _ = run(world, abort("fraud"), asks(PAY, MAIL), says("Done."))
    assert (world.count(), done.stop_reason, done.answer) == (0, "denied", None)
    assert "fraud" in done.partial
    assert [event.source for event in done.trace.of(Observed)] == ["rejected", "not_run"]


def test_asking_for_what_was_rejected_again_and_again_ends_as_denied(world):
    done, asked = run(world, reject("no"), *[asks(PAY)] * 9)
    assert (done.stop_reason, len(asked), world.count()) == ("denied", 3, 0)


def test_a_call_that_cannot_run_is_never_asked_about(world):
    done, asked = run(world, approve(), asks(("pay", {"invoice_id": 5})), says("Sorry."))
    assert asked == [] and done.answer == "Sorry."


def test_a_repeated_write_is_not_asked_about_twice(world):
    done, asked = run(world, approve(), asks(PAY), asks(PAY), says("Done."))
    assert (len(asked), world.count("payment")) == (1, 1)


def test_a_gate_function_that_returns_nonsense_is_the_callers_error(world):
    with pytest.raises(CourseError, match="approve"):
        run(world, "yes")


def test_reversible_writes_run_and_the_person_is_told(world):
    told = []
    draft = Tool("draft", "Draft.", None, lambda: "draft 1", "reversible")
    gate = Gate(CAREFUL, tell=told.append)
    done = run_agent(scripted([asks(("draft", {})), says("Done.")]), [draft], "Go", gate=gate)
    assert [request.call.name for request in told] == ["draft"] and done.answer == "Done."
    assert audit(done.trace)[0]["decision"] == "tell"


def test_a_dry_run_changes_nothing_and_reads(world):
    gate = Gate(CAREFUL, ask=lambda request: approve(), dry_run=True)
    script = [asks(LOOK, PAY, MAIL), asks(PAY), says("Done.")]
    done = run_agent(scripted(script), world_tools(world), "Go", gate=gate)
    sources = [event.source for event in done.trace.of(Observed)]
    assert world.count() == 0 and sources == ["ran", "dry_run", "dry_run", "dry_run"]


# -- approvals given beforehand --------------------------------------------------------------------


def test_an_approval_is_good_for_its_arguments_only(world):
    gate = Gate(CAREFUL, approved=[Approved("pay", {**PAY[1], "amount_eur": 5.0}, who="Ana")])
    more = ("pay", {**PAY[1], "amount_eur": 500})
    done = run_agent(scripted([asks(PAY, more)]), world_tools(world), "Go", gate=gate)
    assert done.stop_reason == "waiting_for_approval"
    assert [row["cents"] for row in world.effects()] == [500]
    assert audit(done.trace)[0]["who"] == "Ana"
    assert "for other arguments" in pending(done)[0].rule


# -- the pause -------------------------------------------------------------------------------------


@pytest.fixture
def waiting(world):
    """A run in memory that waits, its tools, and what its model says afterwards."""
    tools = world_tools(world)
    done = run_agent(scripted([asks(LOOK, PAY, MAIL)]), tools, "Pay.", gate=Gate())
    return done, tools, scripted([says("Done.")])


def test_nothing_runs_before_yes_and_once_after(world, waiting):
    done, tools, model = waiting
    assert (done.stop_reason, world.count()) == ("waiting_for_approval", 0)
    assert [each.call.name for each in pending(done)] == ["pay"]
    again = resume(done, scripted([]), tools, gate=Gate())
    assert (again.stop_reason, world.count()) == ("waiting_for_approval", 0)
    decide(done, approve(who="Ana"))
    assert world.count() == 0
    again = resume(done, scripted([]), tools, gate=Gate())
    assert [row["effect"] for row in world.effects()] == ["payment"]
    assert [each.call.name for each in pending(again)] == ["send_email"]
    decide(again, reject("no mail"))
    final = resume(again, model, tools, gate=Gate())
    assert (final.answer, world.count()) == ("Done.", 1)
    assert [row["decision"] for row in audit(final.trace)] == ["allow", "approve", "reject"]
    check_transcript(final.trace.messages)


def test_approving_twice_runs_once(world, waiting):
    done, tools, _ = waiting
    decide(done, approve())
    with pytest.raises(CourseError, match="decided before"):
        decide(done, approve())
    for _ in range(2):
        resume(done, scripted([]), tools, gate=Gate())
    assert world.count("payment") == 1
    with pytest.raises(CourseError, match="decided before"):
        decide(done, approve(), "call_2")


def test_a_decision_on_a_call_that_does_not_wait_is_refused(waiting):
    done, _, _ = waiting
    for call_id in ("call_1", "call_3", "call_9"):
        with pytest.raises(CourseError, match="No such call"):
            decide(done, approve(), call_id)


def test_changed_arguments_void_an_approval(world, waiting):
    """The reply behind an approved call is exchanged for one with another amount."""
    done, tools, _ = waiting
    decide(done, approve(who="Ana"))
    more = asks(LOOK, ("pay", {**PAY[1], "amount_eur": 500}), MAIL)
    events = [
        Replied(1, more, 2, event.tools) if isinstance(event, Replied) else event
        for event in done.trace.events
    ]
    again = resume(Trace(events), scripted([]), tools, gate=Gate())
    assert (again.stop_reason, world.count()) == ("waiting_for_approval", 0)
    assert [row["decision"] for row in audit(again.trace)] == ["allow", "approve", "void"]
    assert pending(again)[0].call.arguments["amount_eur"] == 500
    decide(again, approve(who="Ben"))
    resume(again, scripted([]), tools, gate=Gate())
    assert [row["cents"] for row in world.effects()] == [50_000]


def test_an_aborted_run_stays_aborted(world, waiting):
    done, tools, model = waiting
    decide(done, abort("no"))
    final = resume(done, model, tools, gate=Gate())
    assert final.stop_reason == "denied"
    assert resume(final, model, tools, gate=Gate()).stop_reason == "denied"
    assert world.count() == 0


def test_a_run_that_met_a_limit_can_go_on_with_more(world):
    tools = world_tools(world)
    first = run_agent(scripted([asks(LOOK)]), tools, "Go", limits=Limits(max_steps=1))
    assert first.stop_reason == "max_steps"
    final = resume(first, scripted([says("Open.")]), tools, limits=Limits(max_steps=2))
    assert (final.answer, final.steps) == ("Open.", 2)
    check_transcript(final.trace.messages)
    assert resume(final, scripted([]), tools).answer == "Open."


def test_calls_are_shown_to_the_person_before_the_effect(world):
    """Whoever decides sees the world as it is before."""
    seen = []
    gate = Gate(CAREFUL, ask=lambda request: seen.append(world.count()) or approve())
    run_agent(scripted([asks(PAY, MAIL), says("Done.")]), world_tools(world), "Go", gate=gate)
    assert seen == [0, 1]


def test_a_run_with_a_gate_does_not_go_on_without_one(world, waiting):
    done, tools, model = waiting
    with pytest.raises(CourseError, match="gate"):
        resume(done, model, tools)
    assert world.count() == 0


def test_the_rules_of_today_win_over_a_decision_of_yesterday(world, waiting):
    done, tools, model = waiting
    decide(done, approve())
    strict = Gate(Policy(effects={"read": "allow", "irreversible": "reject"}))
    final = resume(done, model, tools, gate=strict)
    assert (final.answer, world.count()) == ("Done.", 0)


def test_what_the_rules_allowed_before_a_crash_is_asked_of_them_again(world):
    """The process died between the row of the rules and the call."""
    tools = world_tools(world)
    loose = Gate(Policy(effects={"irreversible": "allow"}))
    trace = new_trace("Pay.", tools)

    def dies(event):
        if isinstance(event, Began):
            raise KeyboardInterrupt

    trace.listener = dies
    with pytest.raises(KeyboardInterrupt):
        run_agent(scripted([asks(PAY)]), tools, trace=trace, gate=loose)
    trace.listener = None
    assert [row["decision"] for row in audit(trace)] == ["allow"]
    again = resume(trace, scripted([]), tools, gate=Gate(CAREFUL))
    assert (again.stop_reason, world.count()) == ("waiting_for_approval", 0)


def test_changing_a_call_into_one_that_was_made_before_does_not_make_it_twice(world):
    done, _ = run(world, modify(PAY[1]), asks(PAY), asks(("pay", {**PAY[1], "amount_eur": 7})))
    assert world.count("payment") == 1
    assert [event.source for event in done.trace.of(Observed)] == ["ran", "stored"]
