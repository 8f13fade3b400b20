"""Publishes from an asyncio loop without making anyone wait for Redis.

What is posted is sent in order by one task, all that has gathered in one round trip. When Redis is away or refuses, the
batch is dropped and logged: the sweep publishes events again from PostgreSQL, and a draft in the making is shown by its
next frame or by the draft itself.
"""

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.clock import monotonic
from app.db.signals import EventFact
from app.live.publisher import check_published, draft_channel, queue_events

log = logging.getLogger(__name__)
BACKLOG = 10_000
"""Events that may wait for a slow Redis; beyond it the oldest are left to the sweep."""
GATHER_S = 0.01
"""How long posts are gathered before they are sent: nobody sees it, and a round trip carries several events."""
LOG_EVERY_S = 10.0


class BackgroundPublisher:
    """Belongs to one loop; `run` is its task."""

    def __init__(self, redis: "Redis") -> None:
        self._redis = redis
        self._events: list[EventFact] = []
        self._drafts: dict[UUID, bytes] = {}
        self._published: dict[UUID, int] = {}
        self._posted = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._logged_at = -LOG_EVERY_S

    def post(self, events: Sequence[EventFact]) -> None:
        """Send these events soon, after all that was posted before."""
        self._events += events
        del self._events[:-BACKLOG]
        self._wake()

    def show_draft(self, thread_id: UUID, run_id: UUID, text: str) -> None:
        """Send the whole text of a draft in the making soon; a newer text replaces one that has not left yet."""
        self._drafts[thread_id] = orjson.dumps({"run": str(run_id), "text": text})
        self._wake()

    def follow(self, thread_id: UUID) -> None:
        """Remember from now on how far the stream has this thread."""
        self._published.setdefault(thread_id, 0)

    def published(self, thread_id: UUID) -> int:
        """Return the number of the newest event of a followed thread that the stream has; 0 when unknown."""
        return self._published.get(thread_id, 0)

    def forget(self, thread_id: UUID) -> None:
        """Stop following a thread."""
        self._published.pop(thread_id, None)

    async def run(self) -> None:
        """Send what is posted until cancelled."""
        while True:
            await self._posted.wait()
            await asyncio.sleep(GATHER_S)
            self._posted.clear()
            events, drafts = self._events, self._drafts
            self._events, self._drafts = [], {}
            try:
                await self._send(events, drafts)
            except (RedisError, OSError) as error:
                self._complain(error, len(events))
            if not self._posted.is_set():
                self._idle.set()

    async def flush(self, limit_s: float) -> None:
        """Wait until all that was posted has been sent or dropped, but no longer than `limit_s` seconds."""
        try:
            await asyncio.wait_for(self._idle.wait(), limit_s)
        except TimeoutError:
            log.warning("left %d events to the sweep", len(self._events))

    def _wake(self) -> None:
        self._idle.clear()
        self._posted.set()

    async def _send(self, events: Sequence[EventFact], drafts: dict[UUID, bytes]) -> None:
        async with self._redis.pipeline(transaction=False) as pipe:
            for thread_id, frame in drafts.items():
                pipe.publish(draft_channel(thread_id), frame)
            queue_events(pipe, events)
            check_published(await pipe.execute(raise_on_error=False))
        for event in events:
            if event.thread_id in self._published:
                self._published[event.thread_id] = event.seq

    def _complain(self, error: Exception, lost: int) -> None:
        if monotonic() - self._logged_at >= LOG_EVERY_S:
            self._logged_at = monotonic()
            log.warning("Redis is away or refuses (%s); %d events are left to the sweep", type(error).__name__, lost)
