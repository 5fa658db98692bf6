"""What a step in the sandbox costs: python tests/benchmarks/sandbox_cost.py

The same programs in smolagents' own local executor, which interprets them in this process and is
no sandbox, and in every variant of ours that runs here; in one process, one after the other in
several rounds. The best round of each counts. The seconds are those of this machine; the ratios
to the local executor are the point.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from course_utils.sandbox import sandbox_executor, variants

ROUNDS = 30
STARTS = 5
PROGRAMS = {
    "one value": "6 * 7",
    "ten prints": "for number in range(10):\n    print(number)",
    "ten tool calls": "for number in range(10):\n    print(get_weather(f'City {number}'))",
    "100,000 additions": "total = 0\nfor number in range(100_000):\n    total += number\ntotal",
}


def tools() -> dict[str, Any]:
    from smolagents import tool

    @tool
    def get_weather(city: str) -> str:
        """Get the current weather of a city.

        Args:
            city: The name of the city.
        """
        return f"2 degrees in {city}"

    return {"get_weather": get_weather}


def local() -> Any:
    from smolagents.local_python_executor import LocalPythonExecutor

    return LocalPythonExecutor([])


def started(make: Callable[[], Any]) -> Any:
    """An executor that has run its first program."""
    executor = make()
    executor.send_tools(tools())
    executor("1")
    return executor


def close(executor: Any) -> None:
    if hasattr(executor, "close"):
        executor.close()


def seconds_of(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def row(name: str, rounds: list[float], base: float) -> str:
    best, middle = 1000 * min(rounds), 1000 * statistics.median(rounds)
    return f"{name:34}{best:10.2f}{middle:10.2f}{min(rounds) / base:10.1f}"


def main() -> None:
    contestants = {"smolagents, local": local}
    for variant in variants.NAMES:
        if (problem := variants.problem_of(variant)) is None:
            contestants[variant] = lambda variant=variant: sandbox_executor(variant=variant)
        else:
            print(f"{variant} does not run here: {problem}")
    started(local)  # imports
    print(f"{'milliseconds':34}{'best':>10}{'median':>10}{'ratio':>10}")
    starts: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(STARTS):
        for name, make in contestants.items():
            starts[name].append(seconds_of(lambda make=make: close(started(make))))
    for name, rounds in starts.items():
        print(row(f"start: {name}", rounds, min(starts["smolagents, local"])))
    executors = {name: started(make) for name, make in contestants.items()}
    for title, program in PROGRAMS.items():
        steps: dict[str, list[float]] = {name: [] for name in executors}
        for _ in range(ROUNDS):
            for name, executor in executors.items():
                steps[name].append(seconds_of(lambda run=executor, code=program: run(code)))
        for name, rounds in steps.items():
            print(row(f"{title}: {name}", rounds, min(steps["smolagents, local"])))
    for executor in executors.values():
        close(executor)


if __name__ == "__main__":
    main()
