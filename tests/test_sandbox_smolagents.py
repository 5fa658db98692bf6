"""A CodeAgent of smolagents on the sandbox: the same observations as with its own executor."""

import contextlib
import io

import pytest

from course_utils.errors import CourseError
from course_utils.sandbox import sandbox_executor, variants

pytestmark = pytest.mark.skipif(
    all(variants.problem_of(name) for name in variants.NAMES), reason="no sandbox runs here"
)


def agent_of(programs, executor=None, tools=None, **settings):
    from smolagents import CodeAgent, Model, tool
    from smolagents.models import ChatMessage, MessageRole

    class Script(Model):
        def __init__(self):
            super().__init__()
            self.left = iter(programs)

        def generate(self, messages, **_):
            text = f"Thought: next.\n<code>\n{next(self.left)}\n</code>"
            return ChatMessage(role=MessageRole.ASSISTANT, content=text)

    @tool
    def weather_api(city: str, unit: str = "C") -> str:
        """Get the weather of a city.

        Args:
            city: The name of the city.
            unit: C or F.
        """
        if city == "Nowhere":
            raise ValueError("no such city")
        return f"2 {unit} in {city}"

    return CodeAgent(
        tools=[weather_api] if tools is None else tools,
        model=Script(),
        executor=executor,
        max_steps=len(programs),
        verbosity_level=0,
        **settings,
    )


def run(agent, **arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        return agent.run("go", **arguments)


@pytest.fixture(scope="module")
def warm():
    executor = sandbox_executor(seconds=30)
    yield executor
    executor.close()


@pytest.fixture
def executor(warm):
    warm.history.clear()
    return warm


def observations(agent):
    return [step.observations for step in agent.memory.steps[1:]]


def test_observations_read_as_those_of_the_local_executor(executor):
    programs = [
        "for city in ['Paris', 'Rome']:\n    print(weather_api(city=city))",
        "x = [1, (2, 3)]",
        "print('a')\nx[0] + 0.5",
        "print('before')\n1 / 0",
        "'π' * 3",
        "weather_api('Oslo', unit='F')",
        "a, b = 1, [2]",
        "seen = {}\nfor city in ['Paris', 'Rome']:\n    seen[city] = weather_api(city)",
        "for city in ['Paris', 'Rome']:\n    weather_api(city)",
        "if seen:\n    len(seen)\nelse:\n    'none'",
        "x[0] += 1",
        "x[0] -= 1",
        "numbers = []\nfor i in range(3): numbers.append(i)",
        "final_answer({'x': x[0], 'text': 'é'})",
    ]
    ours, theirs = agent_of(programs, executor), agent_of(programs)
    assert run(ours) == run(theirs) == {"x": 1, "text": "é"}
    assert observations(ours) == observations(theirs)


def test_errors_reach_the_model_with_their_lines(executor):
    agent = agent_of(
        [
            "import os",
            "x = 1\nweather_api('Nowhere')",
            "weather_api = 3",
            "x = (",
            "final_answer(1)",
        ],
        executor,
    )
    assert run(agent) == 1
    errors = [str(step.error.message) for step in agent.memory.steps[1:-1]]
    assert "Import of os is not allowed. Authorized imports are: ['collections'" in errors[0]
    assert "at line 2 'weather_api('Nowhere')' due to: RuntimeError: weather_api" in errors[1]
    assert "no such city" in errors[1]
    assert "Cannot assign to name 'weather_api'" in errors[2]
    assert "SyntaxError" in errors[3]


def test_history_is_what_the_host_saw(executor):
    agent = agent_of(["weather_api('Oslo')", "1 / 0", "final_answer('done')"], executor)
    run(agent)
    first, second, third = executor.history
    assert [(c.name, c.arguments, c.result) for c in first.calls] == [
        ("weather_api", {"city": "Oslo"}, "2 C in Oslo")
    ]
    assert "ZeroDivisionError" in second.error and third.is_final_answer
    assert first.code.strip() == "weather_api('Oslo')"


def test_variables_of_the_run_are_there(executor):
    agent = agent_of(["final_answer(sorted(cities)[0])"], executor)
    assert run(agent, additional_args={"cities": ["Rome", "Oslo"]}) == "Oslo"


def test_a_variable_that_is_no_data_is_refused(executor):
    with pytest.raises(CourseError, match="'picture' cannot go into the sandbox"):
        executor.send_variables({"picture": object()})
    assert executor("1 + 1").output == 2


def test_the_call_handler_stands_between_program_and_tool():
    asked = []

    def call(name, args, kwargs):
        asked.append((name, args, kwargs))
        raise PermissionError("not approved")

    executor = sandbox_executor(call, seconds=30)
    agent = agent_of(["weather_api('Oslo')", "final_answer('gave up')"], executor)
    assert run(agent) == "gave up"
    agent.cleanup()
    assert asked == [("weather_api", ["Oslo"], {})]
    assert "PermissionError: not approved" in str(agent.memory.steps[1].error.message)


def test_further_imports_are_authorised_by_name():
    executor = sandbox_executor(additional_authorized_imports=["json"], seconds=30)
    assert executor("import json, math\njson.dumps([math.floor(1.5)])").output == "[1]"
    executor.close()
    with pytest.raises(CourseError, match="cannot offer pandas"):
        sandbox_executor(additional_authorized_imports=["pandas"])


def test_two_agents_after_each_other_have_their_own_tools(executor):
    run(agent_of(["final_answer(weather_api('Oslo'))"], executor))
    agent = agent_of(["weather_api('Oslo')", "final_answer(0)"], executor, tools=[])
    run(agent)
    assert "NameError" in str(agent.memory.steps[1].error.message)
