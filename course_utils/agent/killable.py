"""Tools that can be ended by force: in a process of their own."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from course_utils.errors import CourseError
from course_utils.retry import ToolProcessDied, ToolTimeout


def killable(seconds: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a function in a process of its own, which is killed after so many seconds.

    Everything that the function has started by then is killed as well, and no process is left
    behind. The price: a few milliseconds a call; arguments and result must be picklable; and what
    the function does to objects in memory stays in its process (a file or a server outside is
    changed, a list or an in-memory database is not; a SQLite connection must be opened inside).

    Where processes cannot be forked (Windows), the function must be importable: one that was
    written in a notebook is not.

    Raises ToolTimeout, ToolProcessDied, or what the function raises.

    >>> @killable(seconds=5)
    ... def add(a: int, b: int) -> int: return a + b
    """

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)  # also keeps the signature, from which a tool is made
        def run(*args: Any, **kwargs: Any) -> Any:
            return _run(function, args, kwargs, seconds)

        return run

    return make


def _run(function: Callable[..., Any], args: tuple, kwargs: dict, seconds: float) -> Any:
    forks = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(send, function, args, kwargs), daemon=True)
    with warnings.catch_warnings():
        # Newer Pythons warn about forking beside threads; the child uses none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    send.close()  # the child has its own end; with ours open, its death would go unnoticed
    try:
        if not receive.poll(seconds):
            raise ToolTimeout(f"The tool did not return within {seconds:g} s and was killed.")
        worked, value = receive.recv()
    except EOFError:
        raise ToolProcessDied("The process of the tool ended without a result.") from None
    finally:
        receive.close()
        _kill(process)
    if worked:
        return value
    raise value


def _child(send: Connection, function: Callable[..., Any], args: tuple, kwargs: dict) -> None:
    if os.name == "posix":
        os.setsid()  # a group of its own: whatever it starts can be killed with it
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which kills us
    try:
        answer = (True, function(*args, **kwargs))
    except BaseException as error:
        answer = (False, error)
    try:
        send.send(answer)
    except Exception as error:  # the result cannot be pickled
        send.send((False, CourseError(f"The tool's result cannot leave its process: {error}.")))


def _kill(process: Any) -> None:
    if os.name == "posix":
        # Its group can outlive it, and has its number; if the group is gone, all is well.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.is_alive():
        process.kill()
    process.join()
