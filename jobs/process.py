"""What the jobs of this process work with. A job gets an id and finds the rest here."""

from functools import cache

from app.bootstrap import Container, build_container
from app.settings import Settings
from jobs.runtime import RunRuntime

_runtimes: list[RunRuntime] = []


@cache
def container() -> Container:
    """Return the container of this process, built at the first call."""
    return build_container(Settings())


def runtime() -> RunRuntime:
    """Return what drives runs in this process. Raises RuntimeError in a process that drives none."""
    if not _runtimes:
        raise RuntimeError("this process drives no runs; start a worker for the queue 'runs'")
    return _runtimes[-1]


def use_runtime(started: RunRuntime) -> None:
    """Make `started` the runtime that this process's jobs use."""
    _runtimes.append(started)
