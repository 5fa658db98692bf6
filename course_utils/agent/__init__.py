"""The agent loop. Reading order: limits, loop, calls, toolbox, decisions; then repeats,
worker, save, history.

    from course_utils.agent import Limits, run_agent

    run = run_agent(model, tools, "Do I need a jacket in Moscow?", limits=Limits(max_steps=5))
    run.answer, run.stop_reason, run.trace
"""

from course_utils.agent.history import decide, fork, in_doubt, pending, replay, resume, settle
from course_utils.agent.killable import killable
from course_utils.agent.limits import Limits, Prices, StopReason
from course_utils.agent.loop import SYSTEM, needs_observation, new_trace, run_agent
from course_utils.agent.run import Run
from course_utils.agent.save import load_trace

__all__ = [
    "SYSTEM",
    "Limits",
    "Prices",
    "Run",
    "StopReason",
    "decide",
    "fork",
    "in_doubt",
    "killable",
    "load_trace",
    "needs_observation",
    "new_trace",
    "pending",
    "replay",
    "resume",
    "run_agent",
    "settle",
]
