"""Redis may be away at any time: runs go on, and what pages were not told is made up for afterwards."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from redis.exceptions import OutOfMemoryError

from app.bootstrap import Container, build_container
from app.runs.recovery import enqueue_unclaimed, republish
from app.settings import Settings
from tests.agent.parts import FixedDrafter
from tests.factories import make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import events_of, run_of, stream_of, thread_of
from tests.support.own_valkey import OwnValkey
from tests.support.waiting import until

NO_TIME = timedelta(0)


@pytest.fixture
def own_settings(settings: Settings, own_valkey: OwnValkey) -> Settings:
    """The test's settings, on a Valkey that the test may take away."""
    return settings.model_copy(update={"redis_url": own_valkey.url})


@pytest.fixture
def parts(container: Container, own_settings: Settings) -> Iterator[Container]:
    """A container on that Valkey; `container` empties the tables afterwards."""
    made = build_container(own_settings)
    yield made
    made.engine.dispose()
    made.redis.close()


def test_a_run_reaches_its_review_while_redis_goes_away_and_the_stream_is_repaired(
    parts: Container, own_settings: Settings, own_valkey: OwnValkey, start_runtime: StartRuntime
) -> None:
    own_valkey.start()
    made = make_ticket(parts)
    drafter = FixedDrafter(gate=asyncio.Event())
    run = InBackground(start_runtime(make_agent(drafter=drafter), settings=own_settings), made.run_id)
    until(drafter.started.is_set)
    own_valkey.stop()
    drafter.open_gate()
    run.wait()
    assert run_of(parts, made.run_id).status == "waiting_for_review"

    own_valkey.start()
    republish(parts.transaction, parts.publisher)
    numbers = [event.seq for event in events_of(parts, made.thread_id)]
    # What the old server had is gone with it; readers find that in PostgreSQL. What it never had is published.
    assert stream_of(parts, made.thread_id)[-3:] == numbers[-3:]
    thread = thread_of(parts, made.thread_id)
    assert thread.published_seq == thread.last_seq


def test_a_run_goes_from_start_to_review_without_redis(
    parts: Container, own_settings: Settings, own_valkey: OwnValkey, start_runtime: StartRuntime
) -> None:
    made = make_ticket(parts)
    start_runtime(settings=own_settings).execute(made.run_id)
    assert run_of(parts, made.run_id).status == "waiting_for_review"
    own_valkey.start()
    assert republish(parts.transaction, parts.publisher) == 1
    assert stream_of(parts, made.thread_id) == [event.seq for event in events_of(parts, made.thread_id)]
    assert republish(parts.transaction, parts.publisher) == 0


def test_what_a_full_redis_refuses_is_not_taken_for_published(
    parts: Container, own_settings: Settings, own_valkey: OwnValkey, start_runtime: StartRuntime
) -> None:
    own_valkey.start()
    made = make_ticket(parts)
    with own_valkey.client() as client:
        client.config_set("maxmemory", 1)
        start_runtime(settings=own_settings).execute(made.run_id)
        with pytest.raises(OutOfMemoryError):
            republish(parts.transaction, parts.publisher)
        thread = thread_of(parts, made.thread_id)
        assert thread.published_seq < thread.last_seq
        client.config_set("maxmemory", 0)
    assert republish(parts.transaction, parts.publisher) == 1
    # A later burst may have gone through before: the hole that it leaves is one that readers fill. The newest is there.
    assert stream_of(parts, made.thread_id)[-1] == events_of(parts, made.thread_id)[-1].seq


def test_republishing_what_the_stream_has_adds_nothing(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime().execute(made.run_id)
    until(lambda: len(stream_of(container, made.thread_id)) == 10)
    hints = container.redis.xlen("feed")
    assert republish(container.transaction, container.publisher) == 1
    assert container.redis.xlen("feed") == hints
    assert len(stream_of(container, made.thread_id)) == 10


def test_a_run_that_was_created_while_redis_was_away_is_enqueued_by_the_sweep_once(
    parts: Container, own_valkey: OwnValkey
) -> None:
    made = make_ticket(parts)
    own_valkey.start()
    assert parts.redis.llen("rq:queue:runs") == 0
    for _ in range(3):
        enqueue_unclaimed(parts.transaction, parts.queue, older_than=NO_TIME)
    assert parts.redis.lrange("rq:queue:runs", 0, -1) == [str(made.run_id).encode()]
