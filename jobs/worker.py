"""A worker process: `python -m jobs.worker [QUEUE ...]`, by default `delivery urgent runs`.

The first of several queues goes first, and keeps a lane of its own: an approved reply never waits behind runs.
It outlives Redis: away at the start or later, it waits and goes on; runs that are under way don't notice. On SIGTERM it
takes no more jobs, hands its runs back to be gone on with elsewhere, and ends within seconds.
"""

import logging
import signal
import sys
import threading
from uuid import UUID

from redis import Redis, RedisError
from sqlalchemy.exc import OperationalError

from app.agent_parts import build_agent
from app.bootstrap import Container
from app.db.signals import Job, JobName
from app.live.job_queue import DELIVERY, KNOWLEDGE, RUNS, URGENT
from app.logs import configure_logging
from app.runs.recovery import enqueue_unclaimed, sweep
from jobs.lanes import Lanes, LaneWorker
from jobs.process import container, use_runtime
from jobs.runtime import RunRuntime

log = logging.getLogger(__name__)
RECONNECT_S = 1.0
ORDER = (DELIVERY, URGENT, RUNS, KNOWLEDGE)
"""Which queue goes before which."""


def main(queues: list[str]) -> None:
    """Work on these queues until a signal. Raises ValueError for a queue that there is not."""
    unknown = set(queues) - set(ORDER)
    if unknown:
        raise ValueError(f"no such queue: {', '.join(sorted(unknown))}")
    queues = [queue for queue in ORDER if queue in queues]
    configure_logging()
    parts = container()
    runtime = _start_runtime(parts) if {URGENT, RUNS} & set(queues) else None
    # Ingestion keeps a core busy; one document at a time leaves the machine to the runs.
    lanes = Lanes(parts.settings.worker_lanes if runtime else 1)
    if runtime is not None:
        _look_for_lost_runs(parts)
    log.info("ready: %s", ", ".join(queues))
    _work(parts, queues, lanes)
    log.info("stopping")
    if runtime is not None:
        lanes_end = threading.Thread(target=lanes.close)
        lanes_end.start()
        _start_elsewhere(parts, runtime.stop())
        lanes_end.join()
    else:
        lanes.close()


def _start_runtime(parts: Container) -> RunRuntime:
    built = build_agent(parts.settings, parts.sessions)
    built.warm()
    runtime = RunRuntime(parts.settings, built.agent, built.close)
    runtime.start()
    use_runtime(runtime)
    return runtime


def _look_for_lost_runs(parts: Container) -> None:
    """Do at once what the schedule does again and again: a worker's start often follows what loses runs."""
    try:
        sweep(parts.transaction, parts.stale_policy, parts.run_plan())
        enqueue_unclaimed(parts.transaction, parts.queue)
    except (RedisError, OperationalError) as error:
        log.warning("could not look for lost runs (%s); the schedule will", type(error).__name__)


def _work(parts: Container, queues: list[str], lanes: Lanes) -> None:
    stopping = threading.Event()
    redis = Redis.from_url(parts.settings.redis_url)
    while not stopping.is_set():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        try:
            LaneWorker(queues, redis, lanes, stopping).work(logging_level="WARNING")
        except RedisError as error:
            log.warning("Redis is away (%s); trying again", type(error).__name__)
        stopping.wait(RECONNECT_S)


def _start_elsewhere(parts: Container, run_ids: list[UUID]) -> None:
    """Let other workers go on with these runs, ahead of those that nobody has begun."""
    try:
        for run_id in run_ids:
            parts.queue.enqueue(Job(JobName.EXECUTE_RUN, run_id, urgent=True))
    except RedisError:
        log.warning("Redis is away; the sweep will start %d runs elsewhere", len(run_ids))


if __name__ == "__main__":
    main(sys.argv[1:] or [DELIVERY, URGENT, RUNS])
