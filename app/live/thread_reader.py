"""The events of one thread, in order and each once: from its stream, and from PostgreSQL where the stream has a gap."""

from collections.abc import Callable, Mapping
from typing import Any, cast
from uuid import UUID

import orjson
from redis import Redis, RedisError

from app.db.signals import EventFact
from app.live.publisher import thread_stream

History = Callable[[UUID, int], list[EventFact]]
"""Reads PostgreSQL: all events of a thread after a number, in order."""


class ThreadReader:
    """Reads on from `last`, the number of the newest event that the page has.

    The stream is trusted only as far as its numbers follow on: it is read from `last` itself, so that a stream that
    was wiped or cut short shows. Any gap is answered from PostgreSQL, which has at least what the stream has; a number
    without a row there is no event, and is passed over. The first `last` is what a page claims to have: where neither
    knows it, the page has nothing, and is told from the beginning.
    """

    def __init__(self, redis: "Redis", history: History, thread_id: UUID, last: int) -> None:
        self._redis = redis
        self._history = history
        self._thread_id = thread_id
        self.last = last
        self._confirmed = last == 0

    def read(self, at_least: int = 0) -> list[EventFact]:
        """Return the events after `last`, and move on; `at_least` is the newest number that the caller heard of.

        Raises what `history` raises when PostgreSQL is needed and away.
        """
        events = self._from_stream()
        if events is None or (events[-1].seq if events else self.last) < at_least:
            events = self._from_history()
        self._confirmed = True
        if events:
            self.last = events[-1].seq
        return events

    def _from_history(self) -> list[EventFact]:
        if self._confirmed:
            return self._history(self._thread_id, self.last)
        found = self._history(self._thread_id, self.last - 1)
        if not found:
            self.last = 0
            return self._history(self._thread_id, 0)
        return [event for event in found if event.seq > self.last]

    def _from_stream(self) -> list[EventFact] | None:
        """Return what the stream has after `last`, or None where it has a gap or can't be read."""
        try:
            start = f"{self.last}-0" if self.last else "-"
            entries = cast(
                list[tuple[bytes, Mapping[bytes, bytes]]], self._redis.xrange(thread_stream(self._thread_id), start)
            )
        except RedisError:
            return None
        events = [_parse(self._thread_id, entry_id, fields) for entry_id, fields in entries]
        if not self.last:
            expected = 1
        elif events and events[0].seq == self.last:
            events, expected = events[1:], self.last + 1
        else:
            return None
        if [event.seq for event in events] != list(range(expected, expected + len(events))):
            return None
        return events if events or self.last else None


def _parse(thread_id: UUID, entry_id: bytes, fields: Mapping[bytes, bytes]) -> EventFact:
    run = fields[b"run"].decode()
    payload: dict[str, Any] = orjson.loads(fields[b"payload"])
    return EventFact(
        thread_id=thread_id,
        ticket_id=UUID(fields[b"ticket"].decode()),
        seq=int(entry_id.split(b"-")[0]),
        type=fields[b"type"].decode(),
        run_id=UUID(run) if run else None,
        payload=payload,
    )
