"""Waiting for a condition, with a bound: the one place where tests look again and again."""

import threading
from collections.abc import Callable
from typing import TypeVar

from app.clock import monotonic

T = TypeVar("T")


def until(look: Callable[[], T], *, limit_s: float = 10.0) -> T:
    """Return the first true answer of `look`; fail when there is none within `limit_s` seconds."""
    end, pause = monotonic() + limit_s, threading.Event()
    while True:
        answer = look()
        if answer:
            return answer
        assert monotonic() < end, f"did not come true within {limit_s} s"
        pause.wait(0.01)
