"""Who is alive: the runs that this process holds, and the thread that renews their leases in one UPDATE, which waits
for nobody.

A run that can't be renewed because somebody ended it, or has it by a newer claim, is no longer ours and its task is
stopped; the guard of every write would stop it too, only later. This is the net under the stop signal, which may be
lost. A run that waits for a person can't be renewed either, but is left alone: its task has only to tell others of it.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import psycopg

from app.runs.models import RunStatus
from app.runs.statements import LOST_LEASES, RENEW_LEASES

log = logging.getLogger(__name__)
LEASE_S = 10.0
RENEW_EVERY_S = 3.0
_ENDED_BY_OTHERS = [RunStatus.CANCELLED, RunStatus.SUPERSEDED, RunStatus.FAILED]


@dataclass(slots=True, eq=False)
class _Hold:
    run_id: UUID
    task: asyncio.Task[None]
    fence: int | None = None
    stopped: bool = False


class HeldRuns:
    """The runs whose tasks are alive in this process. Safe to use from any thread."""

    def __init__(self) -> None:
        self._held: set[_Hold] = set()
        self._lock = threading.Lock()
        self._closing = False

    @property
    def closing(self) -> bool:
        """True once this process hands its runs back."""
        return self._closing

    @contextmanager
    def hold(self, run_id: UUID) -> Iterator[Callable[[int], None]]:
        """Hold a run while the current task claims and then drives it.

        What this yields must be called with the fencing number when the claim has succeeded. A stop is kept until then:
        a claim that is cut off may be in force all the same, and nobody would work on the run.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a run is driven by a task")
        hold = _Hold(run_id, task)
        with self._lock:
            self._held.add(hold)
        try:
            yield partial(self._claimed, hold)
        finally:
            with self._lock:
                self._held.remove(hold)

    def stop(self, run_id: UUID) -> None:
        """Cancel the task that drives this run, if it is one of ours; one that still claims it, as soon as it has.

        Several may notice that a run has ended, but a task is cancelled once: it has its own end to see to.
        """
        with self._lock:
            holds = [hold for hold in self._held if hold.run_id == run_id and not hold.stopped]
            for hold in holds:
                hold.stopped = True
            driven = [hold.task for hold in holds if hold.fence is not None]
        for task in driven:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def hand_back(self) -> None:
        """Cancel all tasks: this process stops, and each run is handed back for another to go on with."""
        with self._lock:
            self._closing = True
            runs = {hold.run_id for hold in self._held}
        for run_id in runs:
            self.stop(run_id)

    def leases(self) -> list[tuple[UUID, int]]:
        """Return the runs that are driven and the fencing numbers they are held with."""
        with self._lock:
            return [(hold.run_id, hold.fence) for hold in self._held if hold.fence is not None]

    def _claimed(self, hold: _Hold, fence: int) -> None:
        with self._lock:
            hold.fence = fence
            if hold.stopped or self._closing:
                hold.task.cancel()


class LeaseKeeper:
    """Renews the leases of all held runs from a thread of its own, whatever the loop is doing."""

    def __init__(self, dsn: str, held: HeldRuns, *, lease_s: float = LEASE_S, every_s: float = RENEW_EVERY_S) -> None:
        self._dsn = dsn
        self._held = held
        self._lease_s = lease_s
        self._every_s = every_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def start(self) -> None:
        """Start renewing."""
        self._thread.start()

    def close(self) -> None:
        """Stop renewing and wait for the thread."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        connection: psycopg.Connection | None = None
        while not self._closing.wait(self._every_s):
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(self._dsn, autocommit=True, connect_timeout=5)
                self._renew(connection)
            except psycopg.Error as error:
                log.warning("leases were not renewed: %s", type(error).__name__)
            except Exception:
                # Without this thread the sweep would fail every run of this process; it goes on whatever happens.
                log.exception("leases were not renewed")
        if connection is not None:
            connection.close()

    def _renew(self, connection: psycopg.Connection) -> None:
        leases = self._held.leases()
        if not leases:
            return
        mine = {"runs": [run_id for run_id, _ in leases], "fences": [fence for _, fence in leases]}
        renewed = connection.execute(RENEW_LEASES, {**mine, "lease_s": self._lease_s}).rowcount
        if renewed < len(leases):
            for (run_id,) in connection.execute(LOST_LEASES, {**mine, "ended": _ENDED_BY_OTHERS}).fetchall():
                self._held.stop(run_id)
