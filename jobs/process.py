"""What the jobs of this process work with. A job gets an id and finds the rest here."""

from functools import cache

from app.bootstrap import Container, build_container
from app.settings import Settings
from jobs.runtime import RunRuntime

CONNECTIONS = 6
"""Beyond this, searches of the knowledge base wait for one another; all else that jobs read and write is short.
The runs' own writes have a pool apart (`app.runs.ledger`)."""
_runtimes: list[RunRuntime] = []


@cache
def container() -> Container:
    """Return the container of this process, built at the first call."""
    return build_container(Settings(), pool_size=CONNECTIONS, overflow=0)


def runtime() -> RunRuntime:
    """Return what drives runs in this process. Raises RuntimeError in a process that drives none."""
    if not _runtimes:
        raise RuntimeError("this process drives no runs; start a worker for the queue 'runs'")
    return _runtimes[-1]


def use_runtime(started: RunRuntime) -> None:
    """Make `started` the runtime that this process's jobs use."""
    _runtimes.append(started)
