"""Work that computes for long, away from gevent's loop: every live page of the process waits while that is busy."""

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from gevent.monkey import is_module_patched
from gevent.threadpool import ThreadPool

P = ParamSpec("P")
R = TypeVar("R")

AT_ONCE = 2
"""Pieces of work that run at a time; the others wait. It bounds what signing in may take of cores and memory."""


def off_loop(work: Callable[P, R]) -> Callable[P, R]:
    """Return `work` to be run in a thread of its own under gevent, and as it is elsewhere.

    It must take no locks and open no connections: those belong to the loop.
    """
    if not is_module_patched("threading"):
        return work

    @wraps(work)
    def elsewhere(*args: P.args, **kwargs: P.kwargs) -> R:
        result: R = _pool().apply(work, args, kwargs)
        return result

    return elsewhere


@cache
def _pool() -> ThreadPool:
    return ThreadPool(AT_ONCE)
