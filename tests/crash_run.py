"""A run that is killed: `python tests/crash_run.py FOLDER POINT…`, used by test_resume.py.

For each point a process of its own begins the run and kills itself (SIGKILL, so nothing is tidied
up): `7` after the seventh event was written, `torn7` in the middle of writing it, `effect2` right
after the second effect on the world, before its result can be written. World and run are in
FOLDER/POINT. `hold` does not die: it prints a line and waits, in the middle of the run.
"""

import os
import signal
import sys
import time
from pathlib import Path

from agent_kit import LOOK, MAIL, PAY, Follows, asks, says, world_tools

from course_utils.agent import run_agent
from course_utils.agent.save import RunFile
from course_utils.tools import tool
from course_utils.world.world import World

EVENTS = 13  # of the uninterrupted run: checked by the test


def model():
    return Follows(asks(LOOK), asks(MAIL, LOOK), asks(MAIL, PAY), says("Done."))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_while_writing(number, torn):
    write, written = RunFile.add, []

    def add(self, event):
        written.append(event)
        if torn and len(written) == number:
            file = self._file

            class Half:
                def write(self, line):
                    file.write(line[: len(line) // 2])
                    die()

            self._file = Half()
        write(self, event)
        if len(written) == number:
            die()

    RunFile.add = add


def die_after_effect(world, number):
    record, done = world._effects.record, []

    def recorded(*args, **kwargs):
        row = record(*args, **kwargs)
        done.append(row)
        if len(done) == number:
            die()
        return row

    world._effects.record = recorded


def begin(folder, point):
    folder.mkdir()
    world = World(folder / "world.db")
    tools = world_tools(world)
    if point.startswith("effect"):
        die_after_effect(world, int(point.removeprefix("effect")))
    elif point == "hold":
        tools[0] = tool(name="get_invoice")(wait)
    elif point != "whole":
        die_while_writing(int(point.removeprefix("torn")), point.startswith("torn"))
    run_agent(model(), tools, "Go", save=folder / "run.jsonl", run_id="r")


def wait(invoice_id: str) -> str:
    """Wait.

    Args:
        invoice_id: Any.
    """
    print("holding", flush=True)
    time.sleep(600)


def main(folder, points):
    if points == ["hold"]:
        begin(folder / "hold", "hold")
    begin(folder / "warm", "whole")  # imports, so that the forks need not
    for point in points:
        pid = os.fork()
        if pid == 0:
            begin(folder / point, point)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        print(point, "killed" if os.WIFSIGNALED(status) else "ended")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
