"""What all sources of model files share: how they fail, and how long they are waited for.

A source is a small object with a `name`, with `extra_bytes(spec)` (the disk space that it needs
beside the file itself) and with `stream(spec, offset, folder, arriving)`, which yields the bytes
of the file from `offset` on. `folder` is for temporary files; `arriving(n)` is told how many bytes
are on their way before they are yielded. Whatever goes wrong is a SourceFailed with a reason.
"""

import threading
from collections.abc import Callable

PATIENCE = 4.0  # seconds in which a source must give a first sign of life
STALL = 30.0  # seconds without a new byte after which a transfer counts as broken
CHUNK = 2**20


class SourceFailed(Exception):
    """Why one source did not deliver. `broken_off` means that trying again may get further."""

    def __init__(self, reason: str, broken_off: bool = False):
        super().__init__(reason)
        self.broken_off = broken_off


def within(seconds: float, ask: Callable[[], object]) -> object:
    """What `ask()` returns, or SourceFailed if that takes longer than `seconds`.

    A thread, since the time limits of HTTP clients leave out name look-up and count anew for
    every redirect and retry. A late answer is dropped; the thread does not hold up the exit.

    >>> within(1.0, lambda: 42)
    42
    """
    box: list[object] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            box.append(ask())
        except Exception as error:  # carried over to the caller's thread, and raised there
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    if not box:
        raise SourceFailed(f"no answer within {seconds:g} seconds")
    return box[0]


def first_line(error: BaseException) -> str:
    """Kind and first line of an error, short enough for a message.

    >>> first_line(ValueError("one\\ntwo"))
    'ValueError: one'
    """
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__
