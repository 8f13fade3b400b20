"""Tells pages and workers what has been committed: the thread's stream, the feed, and the stop signal.

Streams carry facts, never HTML, and may be wiped at any time: readers fill holes from PostgreSQL.
"""

from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

import orjson
from redis import Redis
from redis.asyncio.client import Pipeline as AsyncPipeline
from redis.client import Pipeline

from app.db.signals import EventFact

Field: TypeAlias = "bytes | bytearray | memoryview[int] | str | int | float"
Entry: TypeAlias = "dict[Field, Field]"
FEED = "feed"
STREAM_LENGTH = 1_000
FEED_LENGTH = 10_000
STREAM_LIFE_S = 7 * 86_400
"""A stream that nothing was added to for so long goes: nobody watches that ticket, and PostgreSQL has its events."""
_HAS_IT = "equal or smaller than the target stream top item"
"""How Redis refuses an entry whose number a stream has or has passed."""


def thread_stream(thread_id: UUID) -> str:
    """Return the key of a thread's stream; its entry ids are `<seq>-0`."""
    return f"thread:{thread_id}"


def draft_channel(thread_id: UUID) -> str:
    """Return the Pub/Sub channel of a draft in the making; each message is `{"run": id, "text": all so far}`."""
    return f"draft:{thread_id}"


def stop_channel(run_id: UUID) -> str:
    """Return the Pub/Sub channel that stops a run in whichever process drives it."""
    return f"stop:{run_id}"


def stream_entry(event: EventFact) -> Entry:
    """Return the fields of an event in its thread's stream."""
    return {
        "type": event.type,
        "ticket": str(event.ticket_id),
        "run": str(event.run_id or ""),
        "payload": orjson.dumps(event.payload),
    }


def feed_entry(event: EventFact) -> Entry:
    """Return the hint that goes to the feed: that a ticket has changed, and up to which number."""
    return {"thread": str(event.thread_id), "ticket": str(event.ticket_id), "seq": event.seq, "type": event.type}


def queue_events(pipe: "Pipeline | AsyncPipeline", events: Sequence[EventFact]) -> None:
    """Queue what publishes these events: an entry in their threads' streams, which live on, and a hint in the feed.

    Run the pipeline with `raise_on_error=False` and hand its results to `check_published`.
    """
    for event in events:
        stream = thread_stream(event.thread_id)
        pipe.xadd(stream, stream_entry(event), id=f"{event.seq}-0", maxlen=STREAM_LENGTH, approximate=True)
        pipe.xadd(FEED, feed_entry(event), maxlen=FEED_LENGTH, approximate=True)
    for stream in {thread_stream(event.thread_id) for event in events}:
        pipe.expire(stream, STREAM_LIFE_S)


def check_published(results: Sequence[object]) -> None:
    """Raise the first error among a pipeline's results. That a stream has an entry already is none: it may be sent
    twice."""
    for result in results:
        if isinstance(result, Exception) and _HAS_IT not in str(result):
            raise result


class Publisher:
    """Publishes over one Redis client. Every call raises redis.RedisError when Redis is away or refuses."""

    def __init__(self, redis: "Redis") -> None:
        self._redis = redis

    def publish(self, events: Sequence[EventFact]) -> None:
        """Append events to their threads' streams and a hint each to the feed; publishing twice does no harm."""
        if not events:
            return
        pipe = self._redis.pipeline(transaction=False)
        queue_events(pipe, events)
        check_published(pipe.execute(raise_on_error=False))

    def last_published(self, thread_id: UUID) -> int:
        """Return the number of the newest event that a thread's stream has; 0 when the stream is empty."""
        for entry_id, _ in self._redis.xrevrange(thread_stream(thread_id), count=1) or ():
            if isinstance(entry_id, bytes):
                return int(entry_id.partition(b"-")[0])
        return 0

    def stop_runs(self, run_ids: Sequence[UUID]) -> None:
        """Tell the processes that drive these runs to stop now; the rows already say so."""
        for run_id in run_ids:
            self._redis.publish(stop_channel(run_id), b"")

    def docs_changed(self, doc_ids: Sequence[UUID]) -> None:
        """Tell knowledge pages that documents have moved on."""
        for doc_id in doc_ids:
            self._redis.xadd(FEED, {"doc": str(doc_id)}, maxlen=FEED_LENGTH, approximate=True)

    def forget_streams(self) -> None:
        """Drop every stream; readers fill the holes from PostgreSQL."""
        for key in (FEED, *self._redis.scan_iter(match="thread:*")):
            self._redis.delete(key)
