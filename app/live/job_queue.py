"""Enqueue jobs by name. RQ only starts work: what must be done, and by whom, stands in PostgreSQL."""

from uuid import UUID

from redis import Redis
from rq import Queue

from app.db.signals import JobName

RUNS, KNOWLEDGE, DELIVERY = "runs", "knowledge", "delivery"
QUEUE_OF: dict[JobName, str] = {
    JobName.EXECUTE_RUN: RUNS,
    JobName.INGEST_DOCUMENT: KNOWLEDGE,
    JobName.DELIVER_REPLY: DELIVERY,
}
JOB_TIMEOUT_S = 900
"""RQ's own limit, a backstop only: every job ends by limits of its own long before."""
RESULT_KEPT_S = {KNOWLEDGE: 86_400}
"""How long RQ keeps what it knows of a job that went well, elsewhere a minute. A document's job enqueues itself again
while it runs, under the same id, and its end sets this limit on the one that waits: it must outlast any queue."""


class JobQueue:
    """Starts jobs on Redis. Raises redis.RedisError when Redis is away; the sweep starts them later."""

    def __init__(self, redis: "Redis") -> None:
        self._redis = redis

    def enqueue(self, name: JobName, key: UUID) -> None:
        """Start the job `name` on the row `key`, whose id is the job's id too.

        A job that waits in its queue already is left there, so that a sweep may call this every time it looks; a second
        delivery of a job finds the row done, or in other hands, and stops.
        """
        queue, job_id = Queue(QUEUE_OF[name], connection=self._redis), str(key)
        if self._redis.lpos(queue.key, job_id) is None:
            queue.enqueue_call(
                name.value,
                args=(job_id,),
                job_id=job_id,
                timeout=JOB_TIMEOUT_S,
                failure_ttl=86_400,
                result_ttl=RESULT_KEPT_S.get(QUEUE_OF[name], 60),
            )
