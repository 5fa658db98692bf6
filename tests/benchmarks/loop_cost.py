"""What a step of the loop costs, beside two agent libraries: python tests/benchmarks/loop_cost.py

The same scripted replies and the same tools for all, in one process, one after the other in
several rounds; the model costs nothing. The best round of each counts. Step limits are on for all,
per-tool time limits are off. The seconds are those of this machine; the ratios are the point.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_utils.agent import Limits, run_agent
from course_utils.messages import Reply, ToolCall
from course_utils.tools import tool

STEPS = 50
ROUNDS = 7


def get_weather(city: str) -> str:
    """Get the current weather of a city.

    Args:
        city: The name of the city.
    """
    return f"2 degrees in {city}"


def ours(save: Path | None = None) -> Callable[[], None]:
    replies = [
        Reply(
            "",
            "scripted",
            "script",
            tool_calls=(ToolCall(f"call_{step}", "get_weather", {"city": f"City {step}"}),),
        )
        for step in range(STEPS)
    ] + [Reply("Cold.", "scripted", "script", content="Cold.")]

    class Script:
        def __init__(self) -> None:
            self.left = iter(replies)

        def chat(self, messages: Any, tools: Any = None) -> Reply:
            return next(self.left)

    weather = tool(get_weather)
    limits = Limits(max_steps=STEPS + 1, tool_seconds=None)

    def run() -> None:
        file = save / f"{time.monotonic_ns()}.jsonl" if save else None
        done = run_agent(Script(), [weather], "Weather?", limits=limits, save=file)
        assert done.answer == "Cold." and done.steps == STEPS + 1

    return run


def langchain() -> Callable[[], None]:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool as langchain_tool

    class Script(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **settings: Any) -> Any:
            return self

    def replies() -> Any:
        for step in range(STEPS):
            arguments = {"city": f"City {step}"}
            call = {"name": "get_weather", "args": arguments, "id": f"call_{step}"}
            yield AIMessage("", tool_calls=[call])
        yield AIMessage("Cold.")

    weather = langchain_tool(get_weather)

    def run() -> None:
        agent = create_agent(Script(messages=replies()), [weather])
        task = {"messages": [{"role": "user", "content": "Weather?"}]}
        state = agent.invoke(task, {"recursion_limit": 4 * STEPS})
        assert state["messages"][-1].content == "Cold."

    return run


def smolagents() -> Callable[[], None]:
    from smolagents import Model, ToolCallingAgent
    from smolagents import tool as smol_tool
    from smolagents.models import (
        ChatMessage,
        ChatMessageToolCall,
        ChatMessageToolCallFunction,
        MessageRole,
    )

    def message(name: str, arguments: dict[str, Any], step: int) -> ChatMessage:
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(id=f"call_{step}", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])

    class Script(Model):
        def __init__(self) -> None:
            super().__init__()
            self.step = -1

        def generate(self, messages: Any, **settings: Any) -> ChatMessage:
            self.step += 1
            if self.step == STEPS:
                return message("final_answer", {"answer": "Cold."}, self.step)
            return message("get_weather", {"city": f"City {self.step}"}, self.step)

    weather = smol_tool(get_weather)

    def run() -> None:
        agent = ToolCallingAgent(
            tools=[weather], model=Script(), max_steps=STEPS + 1, verbosity_level=0
        )
        with contextlib.redirect_stdout(io.StringIO()):
            assert agent.run("Weather?") == "Cold."

    return run


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        contestants = {
            "this loop": ours(),
            "this loop, saved": ours(Path(folder)),
            "langchain create_agent": langchain(),
            "smolagents ToolCallingAgent": smolagents(),
        }
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for run in contestants.values():
            run()  # imports and caches
        for _ in range(ROUNDS):
            for name, run in contestants.items():
                began = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - began)
    base = min(seconds["this loop"])
    print(f"{STEPS} steps with one call each, {ROUNDS} rounds, microseconds a step")
    print(f"{'':30}{'best':>8}{'median':>8}{'ratio':>8}")
    for name, rounds in seconds.items():
        best, middle = (1e6 * each / STEPS for each in (min(rounds), statistics.median(rounds)))
        print(f"{name:30}{best:8.0f}{middle:8.0f}{min(rounds) / base:8.1f}")


if __name__ == "__main__":
    main()
