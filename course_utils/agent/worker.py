"""Waiting for a tool, but not for ever."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

from course_utils.retry import ToolTimeout


class Worker:
    """Runs tools in a thread, so that the waiting can end before the tool does.

    Python cannot kill a thread. After a time-out the loop goes on, and the tool goes on too, in
    its abandoned thread, until it returns or the process ends (the thread is a daemon: it does
    not keep the process alive). Its late result is thrown away. What it does to the world, it
    does: so a write that timed out counts as *unknown*. A tool that must be ended needs a process
    of its own: see `killable`.

    All tools of a run share one thread, and get a new one after a time-out. An object that belongs
    to a thread, such as a SQLite connection, must be opened inside of the tool, or be made for use
    from several threads (`sqlite3.connect(path, check_same_thread=False)`, with a lock).

    >>> Worker().call(lambda: 7, seconds=1.0)
    7
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue | None = None

    def call(self, function: Callable[[], Any], seconds: float | None) -> Any:
        """Return what the function returns, or raise what it raises.

        Without a time limit (`seconds` None) it runs in the caller's own thread. Raises
        ToolTimeout after `seconds`.
        """
        if seconds is None:
            return function()
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            threading.Thread(target=_work, args=(self._jobs,), daemon=True).start()
        answer: queue.SimpleQueue = queue.SimpleQueue()
        # With the caller's context, so that what a tool prints lands in the right notebook cell.
        self._jobs.put((contextvars.copy_context(), function, answer))
        try:
            worked, value = answer.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise ToolTimeout(f"The tool did not return within {seconds:g} s.") from None
        except BaseException:  # KeyboardInterrupt: the tool may still be running
            self.close()
            raise
        if worked:
            return value
        raise value

    def close(self) -> None:
        """Let the thread end after what it is doing now."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None


def _work(jobs: queue.SimpleQueue) -> None:
    while (job := jobs.get()) is not None:
        context, function, answer = job
        try:
            answer.put((True, context.run(function)))
        except BaseException as error:  # the caller decides what to do about it
            answer.put((False, error))
