"""An RQ worker with lanes: one process, many jobs at a time, no fork. PostgreSQL says whose work it is, not RQ.

One lane beside the others is kept for the first of several queues, so that its jobs are never behind those of the rest.
"""

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from redis import Redis, RedisError
from rq import Queue, SimpleWorker
from rq.exceptions import StopRequested
from rq.job import Job
from rq.timeouts import BaseDeathPenalty

log = logging.getLogger(__name__)
HEARTBEAT_S = 10.0
KEPT_LOOK_S = 0.5
"""While all other lanes are taken, the first queue is looked at so often."""


class _NoPenalty(BaseDeathPenalty):
    """RQ's own time limit needs signals, which work in the main thread only; every job has limits of its own."""

    def setup_death_penalty(self) -> None:
        """Set no alarm."""

    def cancel_death_penalty(self) -> None:
        """Cancel no alarm."""


class Lanes:
    """The threads that jobs run in, kept while a worker is replaced after a Redis outage."""

    def __init__(self, count: int) -> None:
        self.free = threading.Semaphore(count)
        self.kept = threading.Semaphore(1)
        self._pool = ThreadPoolExecutor(count + 1, thread_name_prefix="lane")

    def submit(self, lane: threading.Semaphore, worker: "LaneWorker", job: Job, queue: Queue, execution: Any) -> None:
        """Perform a job in a lane that was taken from `free` or `kept`; it is given back at the end."""
        future = self._pool.submit(worker.perform_job, job, queue, execution)
        future.add_done_callback(partial(self._done, lane))

    def close(self) -> None:
        """Wait for the jobs that are under way."""
        self._pool.shutdown(wait=True)

    @staticmethod
    def _done(lane: threading.Semaphore, future: "Future[bool]") -> None:
        lane.release()
        if isinstance(error := future.exception(), RedisError):
            log.warning("RQ was not told how a job ended: Redis is away (%s)", type(error).__name__)
        elif error is not None:
            log.error("a lane failed", exc_info=error)


class LaneWorker(SimpleWorker):
    """Takes a lane first and a job second, so that no job waits here while another process is free."""

    death_penalty_class = _NoPenalty
    max_connection_wait_time = 2.0

    def __init__(self, queues: list[str], connection: "Redis", lanes: Lanes, stopping: threading.Event) -> None:
        # An idle worker looks after RQ's registries only between dequeues, hence the short intervals.
        super().__init__(queues, connection=connection, worker_ttl=20, maintenance_interval=30)
        self._lanes = lanes
        self._stopping = stopping
        self._handing_over = False
        self._all_queues = tuple(self._ordered_queues)
        self._lane = lanes.free

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Wait for a free lane, then for a job; while no lane is free, for a job of the first queue and its lane."""
        several = len(self._all_queues) > 1
        while not self._lanes.free.acquire(timeout=KEPT_LOOK_S if several else HEARTBEAT_S):
            if not several or not self._lanes.kept.acquire(blocking=False):
                self.heartbeat()
            elif found := self._dequeue(self._lanes.kept, self._all_queues[:1], None, None):
                return found
        return self._dequeue(self._lanes.free, self._all_queues, timeout, max_idle_time)

    def _dequeue(
        self, lane: threading.Semaphore, queues: Sequence[Queue], timeout: int | None, max_idle_time: int | None
    ) -> tuple[Job, Queue] | None:
        """Return a job of these queues for the lane that was taken, else give the lane back; no timeout: don't wait."""
        self._lane, self._ordered_queues = lane, list(queues)
        try:
            found: tuple[Job, Queue] | None = super().dequeue_job_and_maintain_ttl(timeout, max_idle_time)
        except BaseException:
            lane.release()
            raise
        if found is None:
            lane.release()
        return found

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Give the job to its lane."""
        self._handing_over = True
        try:
            self._lanes.submit(self._lane, self, job, queue, self.prepare_execution(job))
        except BaseException:
            self._lane.release()
            raise
        finally:
            self._handing_over = False
        if self._stopping.is_set():
            raise StopRequested

    def _shutdown(self) -> None:
        """Stop taking jobs, on SIGTERM or SIGINT; a job that was dequeued still gets its lane."""
        self._stopping.set()
        if not self._handing_over:
            raise StopRequested
