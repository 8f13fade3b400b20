"""Sends what a committed transaction has to tell, and does not let anyone wait twice for a Redis that is away."""

import logging
from collections.abc import Callable

from redis.exceptions import RedisError

from app.clock import monotonic
from app.db.signals import Signals
from app.live.job_queue import JobQueue
from app.live.publisher import Publisher

log = logging.getLogger(__name__)
PAUSE_S = 1.0
"""So long nothing is sent after Redis did not answer: a hung one costs each commit its time limit otherwise."""
LOG_EVERY_S = 10.0


class SignalSender:
    """One for a process. What it drops, the sweeps find in PostgreSQL."""

    def __init__(self, publisher: Publisher, queue: JobQueue, clock: Callable[[], float] = monotonic) -> None:
        self._publisher = publisher
        self._queue = queue
        self._clock = clock
        self._away_until = clock()
        self._logged_at = clock() - LOG_EVERY_S

    def send(self, signals: Signals) -> None:
        """Send all of it, or leave it to the sweeps while Redis is away."""
        if not signals or self._clock() < self._away_until:
            return
        try:
            self._send(signals)
        except RedisError as error:
            self._away_until = self._clock() + PAUSE_S
            if self._clock() - self._logged_at >= LOG_EVERY_S:
                self._logged_at = self._clock()
                log.warning("Redis is away (%s); signals are left to the sweeps", type(error).__name__)

    def _send(self, signals: Signals) -> None:
        self._publisher.publish(signals.events)
        self._publisher.stop_runs(signals.stopped_runs)
        self._publisher.docs_changed(signals.changed_docs)
        for job in signals.jobs:
            self._queue.enqueue(job)
