"""What all runs of a process lean on goes on after an error of its own."""

import asyncio
from uuid import UUID

import pytest
from redis.asyncio import Redis

from app.bootstrap import Container
from app.db.signals import EventFact
from app.ids import new_id
from app.live.background import BackgroundPublisher
from app.runs.leases import HeldRuns, LeaseKeeper
from app.settings import Settings
from jobs import runtime
from tests.runs.looking import stream_of
from tests.support.waiting import until


def fact(thread_id: UUID, seq: int, value: object) -> EventFact:
    return EventFact(thread_id, new_id(), seq, "step_started", None, {"value": value})


def test_a_publisher_that_dies_is_started_again(
    container: Container, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runtime, "RESTART_S", 0.01)
    thread_id = new_id()

    async def work() -> None:
        redis = Redis.from_url(settings.redis_url)
        publisher = BackgroundPublisher(redis)
        helper = asyncio.create_task(runtime.keep_running(publisher.run))
        publisher.post([fact(thread_id, 1, object())])  # no JSON value
        async with asyncio.timeout(5):
            while "starting it again" not in caplog.text:
                await asyncio.sleep(0.01)
        publisher.post([fact(thread_id, 2, "fine")])
        await publisher.flush(5)
        helper.cancel()
        await redis.aclose()

    asyncio.run(work())
    assert stream_of(container, thread_id) == [2]


class FaultyOnce(HeldRuns):
    """Has a bug that shows once."""

    asked = 0

    def leases(self) -> list[tuple[UUID, int]]:
        self.asked += 1
        if self.asked == 1:
            raise ZeroDivisionError
        return super().leases()


def test_leases_are_renewed_after_an_error_that_nobody_thought_of(settings: Settings) -> None:
    held = FaultyOnce()
    keeper = LeaseKeeper(settings.psycopg_dsn, held, every_s=0.01)
    keeper.start()
    try:
        until(lambda: held.asked > 1)
    finally:
        keeper.close()
