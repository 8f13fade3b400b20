"""Enqueue jobs by name. RQ only starts work: what must be done, and by whom, stands in PostgreSQL."""

from uuid import UUID

from redis import Redis
from rq import Queue

from app.db.signals import Job, JobName

DELIVERY, URGENT, RUNS, KNOWLEDGE = "delivery", "urgent", "runs", "knowledge"
QUEUE_OF: dict[JobName, str] = {
    JobName.EXECUTE_RUN: RUNS,
    JobName.INGEST_DOCUMENT: KNOWLEDGE,
    JobName.DELIVER_REPLY: DELIVERY,
}
URGENT_QUEUE_OF: dict[JobName, str] = {JobName.EXECUTE_RUN: URGENT}
"""Where the urgent jobs of a name wait instead, if they have a queue of their own."""
JOB_TIMEOUT_S = 900
"""After so long RQ takes a job for lost and forgets it. It ends none (see `jobs.lanes`): each ends by itself long
before, for a run, each statement, each lock and each call of a model has a limit of its own."""
RESULT_KEPT_S = {KNOWLEDGE: 86_400}
"""How long RQ keeps what it knows of a job that went well, elsewhere a minute. A document's job enqueues itself again
while it runs, under the same id, and its end sets this limit on the one that waits: it must outlast any queue."""


class JobQueue:
    """Starts jobs on Redis. Raises redis.RedisError when Redis is away; the sweep starts them later."""

    def __init__(self, redis: "Redis") -> None:
        self._redis = redis

    def enqueue(self, job: Job) -> None:
        """Start a job under the id of its row.

        A job that waits in a queue already is left there, so that a sweep may call this every time it looks; a second
        delivery of a job finds the row done, or in other hands, and stops.
        """
        job_id = str(job.key)
        if any(self._redis.lpos(queue.key, job_id) is not None for queue in self._queues(job.name)):
            return
        name = URGENT_QUEUE_OF.get(job.name) if job.urgent else None
        queue = Queue(name or QUEUE_OF[job.name], connection=self._redis)
        queue.enqueue_call(
            job.name.value,
            args=(job_id,),
            job_id=job_id,
            timeout=JOB_TIMEOUT_S,
            failure_ttl=86_400,
            result_ttl=RESULT_KEPT_S.get(queue.name, 60),
        )

    def waiting(self, name: JobName) -> frozenset[UUID]:
        """Return the rows whose job of this name waits in a queue: one look for many, where `enqueue` takes one each.

        A queue holds the jobs of one name only.
        """
        return frozenset(UUID(job_id) for queue in self._queues(name) for job_id in queue.get_job_ids())

    def _queues(self, name: JobName) -> list[Queue]:
        names = [QUEUE_OF[name], *filter(None, [URGENT_QUEUE_OF.get(name)])]
        return [Queue(queue, connection=self._redis) for queue in names]
