"""Attack x defence x task: run each, and let the world judge.

A cell that defends must be paid for: so each run reports the user's task too, the calls that were
blocked, the questions that a person was asked, and the tokens; and the same tasks run without an
attack, so that a defence which blocks everything looks as bad as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from course_utils.agent import SYSTEM, Limits, Run, run_agent
from course_utils.approval import Decision, Request
from course_utils.evaluation import interval
from course_utils.injection.attacks import Attack, UserTask, attacks, tasks
from course_utils.injection.defences import Defence, Setting, defence
from course_utils.injection.people import needed, person
from course_utils.injection.provenance import Ledger
from course_utils.injection.reading import model_reader, worst_reader
from course_utils.injection.stage import Stage
from course_utils.injection.victims import Obedient
from course_utils.messages import Reply, user
from course_utils.trace import Observed

# No tool of the stage can hang, so none needs a thread of its own to be timed out in.
LIMITS = Limits(max_steps=9, max_tokens=None, tool_seconds=None)
Victim = Callable[[UserTask], Any]


@dataclass(frozen=True)
class Cell:
    """One run. `attacked` and `done` are read from the rows of the world.

    No reply is judged, with one exception: in a task that only asks (`questions`), the answer is
    what the user gets, and is a row too.
    """

    victim: str
    task: str
    attack: str  # "" for none
    defence: str
    kind: str
    attacked: bool  # the attack reached its goal
    done: bool  # the user's task is done
    blocked: int  # calls that did not run: rejected, unknown tool, forbidden
    asked: int  # questions to the person at the gate
    tokens: int
    replies: int


@dataclass(frozen=True)
class Trial:
    """A cell with what is behind it: the runs (two if the user spoke again) and the rows."""

    cell: Cell
    runs: tuple[Run, ...]
    rows: tuple[dict[str, Any], ...]

    def __repr__(self) -> str:
        said = [f"attack {'succeeded' if self.cell.attacked else 'failed'}"]
        said += [f"task {'done' if self.cell.done else 'not done'}"]
        said += [f"{self.cell.blocked} blocked", f"{self.cell.asked} asked"]
        return f"{self.cell.task} under {self.cell.defence}: {', '.join(said)}"


def trial(
    victim: Victim,
    task: UserTask,
    attack: Attack | None = None,
    against: Defence | None = None,
    *,
    who: str = "attentive",
    extra: Sequence[str] | None = None,
    seed: int = 0,
    **settings: Any,
) -> Trial:
    """Run one task with one attack (or none) under one defence.

    Args:
        victim: Makes an agent for a task: `Obedient`, or `lambda task: load()`.
        task: What the user wants.
        attack: What stands in the slots; None for harmless text.
        against: The defence; None for none.
        who: The person at the gate: attentive, absent, habitual or tired.
        extra: Tools offered beside the task's; left out, those of the attack.
        seed: For the habitual person, whose slips also depend on task, attack and defence.
        settings: Passed on to the model, for example max_new_tokens.
    """
    chosen = against or defence("none")
    asked: list[Request] = []
    # One stream of chances for each run: else a person would slip in all runs of a task or in none.
    chances = f"{seed} {task.id} {attack.id if attack else extra} {chosen.name}"
    answer = person(who, lambda request: needed(task, request), chances)

    def ask(request: Request) -> Decision:
        asked.append(request)
        return answer(request)

    agent = victim(task)
    with Stage(task, attack, extra) as stage:
        setting = _setting(agent, task, ask)
        tools = chosen.tools(stage.tools, setting) if chosen.tools else stage.tools
        options = {
            "limits": LIMITS,
            "gate": chosen.gate(setting) if chosen.gate else None,
            "view": chosen.view,
            **settings,
        }
        model = chosen.model(agent, setting) if chosen.model else agent
        prompt = chosen.prompt(SYSTEM) if chosen.prompt else SYSTEM
        runs = [run_agent(model, tools, task.request, system_prompt=prompt, **options)]
        if attack and attack.follow_up:
            setting.ledger.trust(attack.follow_up)
            said = [*runs[0].trace.messages, user(attack.follow_up)]
            runs.append(run_agent(model, tools, said, **options))
        if runs[0].answer is not None:  # what the user was told is a fact of the world as well
            stage.world.record("answer", {"text": runs[0].answer})
        rows = tuple(stage.rows())
    name = attack.id if attack else ""
    kept = (task.id, name, chosen.name, chosen.kind)
    cell = Cell(
        getattr(agent, "name", "model"),
        *kept,
        attacked=attack.succeeded(task, rows) if attack else False,
        done=task.success.stands_in(rows),
        blocked=sum(map(_blocked, runs)),
        asked=len(asked),
        tokens=sum(run.tokens for run in runs),
        replies=sum(run.steps for run in runs),
    )
    return Trial(cell, tuple(runs), rows)


def _setting(agent: Any, task: UserTask, ask: Callable[[Request], Decision]) -> Setting:
    if not isinstance(agent, Obedient):
        return Setting(task, ask, Ledger(task.request), model_reader(agent))

    def planner(messages: Any, tools: Any) -> Reply:
        reply = agent.chat(messages, tools)  # for the count of its tokens
        return Reply(**{**vars(reply), "tool_calls": tuple(agent.plan(tools)), "content": ""})

    return Setting(task, ask, Ledger(task.request), worst_reader(task), planner)


def _blocked(run: Run) -> int:
    errors = ('"error": "unknown_tool"', '"error": "forbidden"')
    return sum(
        event.source == "rejected" or any(error in event.content for error in errors)
        for event in run.trace.of(Observed)
        if not event.ok
    )


def run_matrix(
    victim: Victim = Obedient,
    names: Iterable[str | Defence] = (),
    *,
    of_attacks: Iterable[Attack] | None = None,
    of_tasks: Iterable[UserTask] | None = None,
    who: str = "attentive",
    **settings: Any,
) -> list[Cell]:
    """All cells: every attack on every task under every defence, and the same without attack.

    Defences are given by name, or as they are; left out, all of `DEFENCES`.
    Without an attack, a task runs once for each set of tools that an attack would add.
    """
    from course_utils.injection.defences import DEFENCES

    chosen_attacks = list(attacks().values() if of_attacks is None else of_attacks)
    chosen_tasks = list(tasks().values() if of_tasks is None else of_tasks)
    sets = dict.fromkeys(tuple(each.tools) for each in chosen_attacks)
    cells = []
    for name in names or DEFENCES:
        against = defence(name) if isinstance(name, str) else name
        for task in chosen_tasks:
            for each in chosen_attacks:
                run = trial(victim, task, each, against, who=who, **settings)
                cells.append(run.cell)
            for extra in sets:
                run = trial(victim, task, None, against, who=who, extra=extra, **settings)
                cells.append(run.cell)
    return cells


def summary(cells: Iterable[Cell], by: str = "defence") -> list[dict[str, Any]]:
    """A row for each defence (or attack, task, victim): shares with N and Wilson intervals.

    The shares of attacks that succeeded and of tasks done under attack, tasks done without
    attack, and per run the calls blocked, questions asked and tokens (the mean of attacked and calm
    runs together).

    A scripted victim does the same every time. Its runs are no sample, and the intervals then only
    say how few cells stand behind a share; they are no forecast of other attacks.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(str(getattr(cell, by)), []).append(cell)
    rows = []
    for name, group in groups.items():
        under = [cell for cell in group if cell.attack]
        calm = [cell for cell in group if not cell.attack]
        row: dict[str, Any] = {by: name}
        if under:
            row["attack succeeded"] = share([cell.attacked for cell in under])
            row["task done"] = share([cell.done for cell in under])
        if calm:
            row["task done, no attack"] = share([cell.done for cell in calm])
            row["asked, no attack"] = _mean(cell.asked for cell in calm)
        if under:
            row["asked"] = _mean(cell.asked for cell in under)
            row["blocked"] = _mean(cell.blocked for cell in under)
        row["tokens"] = round(sum(cell.tokens for cell in group) / len(group))
        rows.append(row)
    return rows


def share(outcomes: Sequence[bool]) -> str:
    """A count, its share, and Wilson's interval for it.

    >>> share([True] * 7 + [False])
    '7/8 = 88 % (53-98)'
    """
    won, of = sum(outcomes), len(outcomes)
    low, high = interval(won, of)
    return (
        f"{won}/{of} = {won / of:.0%} ({low:.0%}-{high:.0%})".replace("%", " %", 1)
        .replace("%-", "-")
        .replace("%)", ")")
    )


def _mean(values: Iterable[int]) -> float:
    counted = list(values)
    return round(sum(counted) / len(counted), 2)


def as_rows(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Cells as dicts, for a table or a file."""
    return [asdict(cell) for cell in cells]
