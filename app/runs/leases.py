"""Who is alive: the runs that this process holds, and the thread that renews their leases in one UPDATE.

A run that can't be renewed twice in a row is no longer ours (cancelled, superseded, swept), so its task is stopped; the
guard of every write would stop it too, only later. This is the net under the stop signal, which may be lost. Once is
not enough: a run that has just reached its review can't be renewed either, while its task still tells others of it.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

import psycopg

from app.runs.statements import RENEW_LEASES

log = logging.getLogger(__name__)
LEASE_S = 10.0
RENEW_EVERY_S = 3.0


@dataclass(frozen=True, slots=True)
class _Held:
    fence: int
    task: asyncio.Task[None]


class HeldRuns:
    """The runs whose tasks are alive in this process. Safe to use from any thread."""

    def __init__(self) -> None:
        self._held: dict[UUID, _Held] = {}
        self._lock = threading.Lock()
        self._closing = False

    @property
    def closing(self) -> bool:
        """True once this process hands its runs back."""
        return self._closing

    @contextmanager
    def hold(self, run_id: UUID, fence: int) -> Iterator[None]:
        """Hold a run while the current task drives it."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a run is driven by a task")
        with self._lock:
            self._held[run_id] = _Held(fence, task)
            if self._closing:
                task.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(run_id, None)

    def stop(self, run_id: UUID) -> None:
        """Cancel the task that drives this run, if it is one of ours."""
        with self._lock:
            held = self._held.get(run_id)
        if held is not None:
            held.task.get_loop().call_soon_threadsafe(held.task.cancel)

    def hand_back(self) -> None:
        """Cancel all tasks: this process stops, and each run is handed back for another to go on with."""
        with self._lock:
            self._closing = True
            runs = list(self._held)
        for run_id in runs:
            self.stop(run_id)

    def leases(self) -> list[tuple[UUID, int]]:
        """Return the runs held and the fencing numbers they are held with."""
        with self._lock:
            return [(run_id, held.fence) for run_id, held in self._held.items()]


class LeaseKeeper:
    """Renews the leases of all held runs from a thread of its own, whatever the loop is doing."""

    def __init__(self, dsn: str, held: HeldRuns, *, lease_s: float = LEASE_S, every_s: float = RENEW_EVERY_S) -> None:
        self._dsn = dsn
        self._held = held
        self._lease_s = lease_s
        self._every_s = every_s
        self._missed: set[tuple[UUID, int]] = set()
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
        params = {
            "lease_s": self._lease_s,
            "runs": [run_id for run_id, _ in leases],
            "fences": [fence for _, fence in leases],
        }
        renewed = {row[0] for row in connection.execute(RENEW_LEASES, params)}
        missed = {lease for lease in leases if lease[0] not in renewed}
        for run_id, _ in missed & self._missed:
            self._held.stop(run_id)
        self._missed = missed
