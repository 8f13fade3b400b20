"""An RQ worker with lanes: one process, many jobs at a time, no fork. PostgreSQL says whose work it is, not RQ."""

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from redis import Redis, RedisError
from rq import Queue, SimpleWorker
from rq.exceptions import StopRequested
from rq.job import Job
from rq.timeouts import BaseDeathPenalty

log = logging.getLogger(__name__)
HEARTBEAT_S = 10


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
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="lane")

    def submit(self, worker: "LaneWorker", job: Job, queue: Queue, execution: Any) -> None:
        """Perform a job in a lane that was taken from `free`; the lane is given back at the end."""
        self._pool.submit(worker.perform_job, job, queue, execution).add_done_callback(self._done)

    def close(self) -> None:
        """Wait for the jobs that are under way."""
        self._pool.shutdown(wait=True)

    def _done(self, future: "Future[bool]") -> None:
        self.free.release()
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

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Wait for a free lane, then for a job."""
        while not self._lanes.free.acquire(timeout=HEARTBEAT_S):
            self.heartbeat()
        try:
            found: tuple[Job, Queue] | None = super().dequeue_job_and_maintain_ttl(timeout, max_idle_time)
        except BaseException:
            self._lanes.free.release()
            raise
        if found is None:
            self._lanes.free.release()
        return found

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Give the job to its lane."""
        self._handing_over = True
        try:
            self._lanes.submit(self, job, queue, self.prepare_execution(job))
        except BaseException:
            self._lanes.free.release()
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
