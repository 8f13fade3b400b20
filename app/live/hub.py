"""One reader of the feed per web process, fanned out to the pages that are open in it.

Plain threads and locks, which gevent makes cooperative. The hub carries hints, never the truth: a page that hears one
reads the state. What can't be delivered (a slow page, a Redis that was away) becomes `reread`, so that nothing is
lost and nothing piles up.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import orjson
from redis import Redis, RedisError

from app.clock import monotonic
from app.ids import parse_id
from app.live.publisher import FEED, draft_channel

log = logging.getLogger(__name__)

QUEUE_LIMIT = 200
"""Hints that a page may be behind before it is told to read everything again."""
BLOCK_MS = 1_000
SOCKET_TIMEOUT_S = 10
"""Longer than a blocking read, which it would end otherwise; short enough to notice a Redis that went silent."""
RETRY_S = 1.0
SETTLE_S = 0.03
"""What happens within this time of the first news is taken as one batch: a run's events come in bursts."""
_DRAFT_PREFIX = draft_channel(UUID(int=0)).removesuffix(str(UUID(int=0)))


@dataclass(frozen=True, slots=True)
class TicketHint:
    """A ticket has changed: its thread now has the event `seq` of this type."""

    thread_id: UUID
    ticket_id: UUID
    seq: int
    type: str


@dataclass(frozen=True, slots=True)
class DraftFrame:
    """A draft in the making: the whole text so far."""

    run_id: UUID
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What a page has to look at. `reread` means that hints may have been missed: read the state again."""

    hints: tuple[TicketHint, ...] = ()
    docs: frozenset[UUID] = frozenset()
    draft: DraftFrame | None = None
    reread: bool = False
    heard: float = field(default=0.0, compare=False)
    """When the last of it reached this process, by the monotonic clock; a state read after that has all of it."""

    def __bool__(self) -> bool:
        return bool(self.hints or self.docs or self.draft or self.reread)


@dataclass(slots=True, eq=False)
class Subscription:
    """One open page: hints of all tickets, and drafts of its own thread. Bounded; a newer draft replaces the older."""

    thread_id: UUID | None
    _changed: threading.Event = field(default_factory=threading.Event)
    _own_changed: threading.Event = field(default_factory=threading.Event)
    _pause: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _hints: list[TicketHint] = field(default_factory=list)
    _docs: set[UUID] = field(default_factory=set)
    _draft: DraftFrame | None = None
    _reread: bool = False
    _heard: float = 0.0

    def take(self, timeout: float, *, for_others: bool = True) -> Batch:
        """Wait up to `timeout` seconds for news and return all there is; an empty batch when there is none.

        Without `for_others`, hints of other threads than the page's own are left to gather for as long.
        """
        if (self._changed if for_others else self._own_changed).wait(timeout):
            self._pause.wait(SETTLE_S)
        with self._lock:
            batch = Batch(tuple(self._hints), frozenset(self._docs), self._draft, self._reread, self._heard)
            self._hints, self._docs, self._draft, self._reread = [], set(), None, False
            self._changed.clear()
            self._own_changed.clear()
        return batch

    def add_hint(self, hint: TicketHint) -> None:
        """Note a hint, or `reread` in the place of all of them when the page is too far behind."""
        with self._lock:
            if len(self._hints) >= QUEUE_LIMIT:
                self._hints, self._reread = [], True
            else:
                self._hints.append(hint)
            self._heard = monotonic()
            self._wake(own=hint.thread_id == self.thread_id)

    def add_doc(self, doc_id: UUID) -> None:
        """Note that a document has moved on."""
        with self._lock:
            self._docs.add(doc_id)
            self._wake()

    def set_draft(self, frame: DraftFrame) -> None:
        """Put the newest text of the draft in the place of an older one that was not taken yet."""
        with self._lock:
            self._draft = frame
            self._wake()

    def tell_to_reread(self) -> None:
        """Note that hints may have been missed."""
        with self._lock:
            self._reread = True
            self._heard = monotonic()
            self._wake()

    def _wake(self, *, own: bool = True) -> None:
        self._changed.set()
        if own:
            self._own_changed.set()


class Hub:
    """Reads the feed and the draft channels once per process; starts with the first subscription.

    While Redis is away `connected` is false, and pages read PostgreSQL by themselves.
    """

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._subscriptions: set[Subscription] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._feed_ready = threading.Event()
        self._drafts_ready = threading.Event()

    @property
    def connected(self) -> bool:
        """True while hints arrive."""
        return self._feed_ready.is_set()

    @contextmanager
    def subscribe(self, thread_id: UUID | None) -> Iterator[Subscription]:
        """Open a subscription; what happens from now on is in it."""
        subscription = Subscription(thread_id)
        with self._lock:
            self._subscriptions.add(subscription)
            if not self._threads:
                self._start()
        try:
            yield subscription
        finally:
            with self._lock:
                self._subscriptions.discard(subscription)

    def wait_until_ready(self, timeout: float) -> bool:
        """Wait until feed and drafts are being read; false when that takes longer than `timeout` seconds."""
        return self._feed_ready.wait(timeout) and self._drafts_ready.wait(timeout)

    def close(self) -> None:
        """End both readers and wake every page; used when a process or a test ends."""
        self._closing.set()
        for subscription in self._open():
            subscription.tell_to_reread()
        for thread in self._threads:
            thread.join(BLOCK_MS / 1000 + 1)

    def _start(self) -> None:
        for name, read, ready in (
            ("feed", self._read_feed, self._feed_ready),
            ("drafts", self._read_drafts, self._drafts_ready),
        ):
            thread = threading.Thread(target=self._keep_reading, args=(read, ready), name=f"hub-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _open(self) -> list[Subscription]:
        with self._lock:
            return list(self._subscriptions)

    def _keep_reading(self, read: Callable[["Redis"], None], ready: threading.Event) -> None:
        while not self._closing.is_set():
            client = Redis.from_url(self._redis_url, socket_timeout=SOCKET_TIMEOUT_S, socket_connect_timeout=2)
            try:
                read(client)
            except RedisError as error:
                log.warning("hub lost Redis (%s), trying again", type(error).__name__)
            except Exception:
                log.exception("hub reader failed, trying again")
            finally:
                was_ready = ready.is_set()
                ready.clear()
                client.close()
            if was_ready:  # pages must notice at once that hints have stopped
                for subscription in self._open():
                    subscription.tell_to_reread()
            self._closing.wait(RETRY_S)

    def _read_feed(self, client: "Redis") -> None:
        newest = cast(list[tuple[bytes, Any]], client.xrevrange(FEED, count=1))
        last = newest[0][0] if newest else b"0-0"
        for subscription in self._open():  # hints between two connections are gone
            subscription.tell_to_reread()
        self._feed_ready.set()
        while not self._closing.is_set():
            answer = cast(Any, client.xread({FEED: last}, count=500, block=BLOCK_MS))
            for _, entries in answer.items() if isinstance(answer, dict) else answer or ():
                for entry_id, fields in entries:
                    last = entry_id
                    self._fan_out(fields)

    def _fan_out(self, fields: Mapping[bytes, bytes]) -> None:
        doc_id = parse_id(fields.get(b"doc", b"").decode())
        if doc_id is not None:
            for subscription in self._open():
                subscription.add_doc(doc_id)
            return
        hint = _parse_hint(fields)
        if hint is not None:
            for subscription in self._open():
                subscription.add_hint(hint)

    def _read_drafts(self, client: "Redis") -> None:
        with cast(Any, client).pubsub() as pubsub:
            pubsub.psubscribe(f"{_DRAFT_PREFIX}*")
            while not self._closing.is_set():
                message = pubsub.get_message(timeout=BLOCK_MS / 1000)
                if message is None:
                    continue
                if message["type"] == "psubscribe":
                    self._drafts_ready.set()
                elif message["type"] == "pmessage":
                    self._show_draft(message["channel"], message["data"])

    def _show_draft(self, channel: bytes, data: bytes) -> None:
        thread_id = parse_id(channel.decode().removeprefix(_DRAFT_PREFIX))
        watching = [s for s in self._open() if s.thread_id is not None and s.thread_id == thread_id]
        if not watching:
            return
        frame = _parse_draft(data)
        for subscription in watching if frame is not None else ():
            subscription.set_draft(cast(DraftFrame, frame))


def _parse_hint(fields: Mapping[bytes, bytes]) -> TicketHint | None:
    """Return the hint of a feed entry, or None for an entry that is not ours to read."""
    thread_id, ticket_id = (parse_id(fields.get(name, b"").decode()) for name in (b"thread", b"ticket"))
    seq = fields.get(b"seq", b"")
    if thread_id is None or ticket_id is None or not seq.isdigit():
        return None
    return TicketHint(thread_id, ticket_id, int(seq), fields.get(b"type", b"").decode())


def _parse_draft(data: bytes) -> DraftFrame | None:
    """Return the frame of a draft message, or None for one that can't be read."""
    try:
        message = orjson.loads(data)
        run_id = parse_id(str(message["run"]))
        return DraftFrame(run_id, str(message["text"])) if run_id else None
    except (ValueError, KeyError, TypeError):
        return None
