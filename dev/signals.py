"""How the launcher hears Ctrl-C, SIGTERM and the closing of its terminal."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asks for the end."""


def raise_on_signals() -> None:
    """From now on SIGINT and SIGTERM raise Stopped wherever the main thread is; SIGHUP is a SIGTERM without a terminal.

    Honcho has handlers of its own for the first two while it runs; its helper processes ignore them.
    """
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, _hang_up)


def ignore_signals() -> None:
    """Let nothing interrupt the stopping: a second Ctrl-C would leave servers behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, _hang_up)


def _stop(_number: int, _frame: FrameType | None) -> None:
    ignore_signals()
    raise Stopped


def _hang_up(_number: int, _frame: FrameType | None) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)  # writing to a terminal that is gone would fail
    os.close(nowhere)
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put signals off until the end of the block: a server must not be cut off while it is being made."""
    put_off: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        put_off.append(number)

    before = {number: signal.signal(number, note) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if put_off:
            os.kill(os.getpid(), put_off[0])
