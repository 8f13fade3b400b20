"""Signals of committed transactions: nobody waits twice for a Redis that is away, and what it misses is dropped."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from app.db.signals import EventFact, Job, JobName, Signals
from app.ids import new_id
from app.live.job_queue import JobQueue
from app.live.publisher import Publisher, thread_stream
from app.live.sender import PAUSE_S, SignalSender
from tests.support.own_valkey import OwnValkey


class Clock:
    """A clock that the test moves on."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def valkey(var_dir: Path) -> Iterator[OwnValkey]:
    """A Valkey of this test's own, not running yet."""
    made = OwnValkey(var_dir)
    yield made
    made.stop()


def test_after_redis_was_away_nothing_is_sent_for_a_moment_and_then_again(
    valkey: OwnValkey, caplog: pytest.LogCaptureFixture
) -> None:
    clock, thread_id = Clock(), new_id()
    with Redis.from_url(valkey.url, socket_connect_timeout=1) as redis:
        sender = SignalSender(Publisher(redis), JobQueue(redis), clock)

        def tell(seq: int) -> None:
            sender.send(
                Signals([EventFact(thread_id, new_id(), seq, "x", None, {})], [Job(JobName.EXECUTE_RUN, new_id())])
            )

        tell(1)
        valkey.start()
        tell(2)
        clock.now += PAUSE_S
        tell(3)
        sent = [int(entry_id.split(b"-")[0]) for entry_id, _ in redis.xrange(thread_stream(thread_id))]
        assert (sent, redis.llen("rq:queue:runs")) == ([3], 1)
    assert len(caplog.messages) == 1


def test_what_has_nothing_to_tell_does_not_ask_redis(valkey: OwnValkey, caplog: pytest.LogCaptureFixture) -> None:
    with Redis.from_url(valkey.url) as redis:
        SignalSender(Publisher(redis), JobQueue(redis), Clock()).send(Signals())
    assert not caplog.messages
