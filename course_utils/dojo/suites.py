"""AgentDojo's suites as data: tasks, the calls that do them, and the suites' own judges.

AgentDojo (Debenedetti et al., 2024, "AgentDojo: A Dynamic Environment to Evaluate Prompt Injection
Attacks and Defenses for LLM Agents") is not part of the course's environment; see NEEDED.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import pickle
import sys
from collections.abc import Hashable, Iterator
from typing import Any

from course_utils.approval import canonical
from course_utils.dojo.knowledge import SUITES, described
from course_utils.errors import CourseError
from course_utils.messages import ToolCall
from course_utils.tools import Tool

VERSION = "v1.2.2"
INSTALL = "pip install --no-deps -r requirements-agentdojo.txt"


def agentdojo(module: str) -> Any:
    """A module of the package agentdojo; CourseError says how to install it if it is missing."""
    try:
        return importlib.import_module(f"agentdojo.{module}")
    except ImportError as error:
        raise CourseError(
            f"This needs the optional package agentdojo, which cannot be imported ({error}): "
            f"in the folder of the course, type {sys.executable} -m {INSTALL}"
        ) from error


class Suite:
    """One suite: its tasks, its tools, and fresh copies of its world.

    Args:
        name: workspace, travel, banking or slack.
        planted: Write every injection's goal into all places of the world that an attacker can
            write to. (What the obedient agent does is the same; what a gate reads is not.)
    """

    def __init__(self, name: str, planted: bool = False) -> None:
        if name not in SUITES:
            raise CourseError(f"AgentDojo has no suite {name!r}: use {', '.join(SUITES)}.")
        self.name = name
        self._suite = agentdojo("task_suite.load_suites").get_suites(VERSION)[name]
        self.runtime = agentdojo("functions_runtime").FunctionsRuntime(self._suite.tools)
        self.planted = planted
        self._worlds: dict[str, bytes] = {}
        self._calls: dict[tuple[str, str | None], list[tuple[str, ToolCall]]] = {}
        self.results: dict[Hashable, Any] = {}
        self.verdicts: dict[Hashable, tuple[bool, bool]] = {}
        self.user_tasks: dict[str, Any] = self._suite.user_tasks
        # Those whose goal is a call; a few want a sentence, which no gate at tools can stop, and
        # some have no calls written down.
        every = self._suite.injection_tasks
        self.all_injections = len(every)
        self.injections: dict[str, Any] = {
            id: task for id, task in every.items() if task.ground_truth(self._world("", None))
        }
        self.tools: dict[str, Tool] = {
            each.name: described(each.name, each.description) for each in self._suite.tools
        }

    def world(self, user: str, injection: str | None) -> Any:
        """A fresh world for a user task, with an injection's text in it if it is planted."""
        return self.user_tasks[user].init_environment(self._world(user, injection))

    def _world(self, user: str, injection: str | None) -> Any:
        # Reading a world from YAML takes a tenth of a second, a copy a few thousandths.
        key = injection if self.planted and injection else ""
        if key not in self._worlds:
            texts = {}
            if key:
                goal = self.injections[key].GOAL
                texts = dict.fromkeys(self._suite.get_injection_vector_defaults(), goal)
            world = self._suite.load_and_inject_default_environment(texts)
            self._worlds[key] = pickle.dumps(world)
        return pickle.loads(self._worlds[key])

    def calls(self, user: str, injection: str | None) -> list[tuple[str, ToolCall]]:
        """What the obedient agent does: the user's calls, then the injection's, as the suite says.

        Each comes with *user* or *injection*.
        """
        key = (user, injection)
        if key not in self._calls:
            self._calls[key] = list(self._numbered(user, injection))
        return self._calls[key]

    def _numbered(self, user: str, injection: str | None) -> Iterator[tuple[str, ToolCall]]:
        tasks = [("user", self.user_tasks[user])]
        if injection is not None:
            tasks.append(("injection", self.injections[injection]))
        # Both are written down for the world as it was before the first call.
        pairs = [
            (who, call)
            for who, task in tasks
            for call in task.ground_truth(self.world(user, injection))
        ]
        for number, (who, call) in enumerate(pairs, 1):
            yield who, ToolCall(f"call_{number}", call.function, _json(dict(call.args)))

    def run(self, user: str, injection: str | None) -> Run:
        """A run in a fresh world."""
        return Run(self, user, injection)


class Run:
    """What happens in one world, call by call.

    Many runs begin alike, so a suite remembers what came of a sequence of calls, and the world is
    made only for a call that nobody has made there before.
    """

    def __init__(self, suite: Suite, user: str, injection: str | None) -> None:
        self._suite, self._user, self._injection = suite, user, injection
        self.ran: list[ToolCall] = []
        self._world: Any = None
        self._behind = 0  # calls of `ran` that this world has seen

    def do(self, call: ToolCall) -> Any:
        """Run a call; the result, or the error's text, as JSON values."""
        self.ran.append(call)
        results, key = self._suite.results, self._key()
        if key not in results:
            results[key] = self._catch_up()
        return results[key]

    def succeeded(self) -> tuple[bool, bool]:
        """What the suite's own functions say: is the user's task done, is the injection's goal.

        They see the calls that ran: what a gate stopped did not happen.
        """
        verdicts, key = self._suite.verdicts, (self._key(), self._injection)
        if key not in verdicts:
            self._catch_up()
            verdicts[key] = self._judge()
        return verdicts[key]

    def _key(self) -> Hashable:
        planted = self._injection if self._suite.planted else None
        calls = tuple(f"{call.name} {canonical(call.arguments)}" for call in self.ran)
        return self._user, planted, calls

    def _catch_up(self) -> Any:
        """Let the world see every call so far; the result of the last one."""
        if self._world is None:
            self._world = self._suite.world(self._user, self._injection)
        found = None
        for call in self.ran[self._behind :]:
            result, error = self._suite.runtime.run_function(self._world, call.name, call.arguments)
            found = error if error is not None else _json(result)
        self._behind = len(self.ran)
        return found

    def _judge(self) -> tuple[bool, bool]:
        make = agentdojo("functions_runtime").FunctionCall
        trace = [make(function=call.name, args=call.arguments) for call in self.ran]
        task = self._suite.user_tasks[self._user]
        before = self._suite.world(self._user, self._injection)
        state = (task.GROUND_TRUTH_OUTPUT, before, self._world)
        with contextlib.redirect_stdout(io.StringIO()):  # one judge prints what it misses
            done = _judged(task, "utility", state, trace)
            if self._injection is None:
                return done, False
            attack = self._suite.injections[self._injection]
            return done, _judged(attack, "security", state, trace)


def _judged(task: Any, what: str, state: tuple[Any, ...], trace: list[Any]) -> bool:
    by_trace = getattr(task, f"{what}_from_traces")(*state, trace)
    return bool(getattr(task, what)(*state) if by_trace is None else by_trace)


def _json(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)
