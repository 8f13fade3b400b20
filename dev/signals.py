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
    """From now on a signal raises Stopped wherever the main thread is."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    for number in ENDING:
        signal.signal(number, stop)


def ignore_signals() -> None:
    """Let nothing interrupt the stopping: a second Ctrl-C would leave servers behind."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


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
