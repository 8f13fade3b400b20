"""Events of a thread arrive in order and once, whatever happened to the stream."""

import random
from uuid import UUID

import pytest
from redis import Redis
from sqlalchemy import text

from app.bootstrap import Container
from app.db.signals import EventFact
from app.live.publisher import thread_stream
from app.live.thread_reader import ThreadReader
from app.runs.events import events_after
from tests.factories import MadeTicket, make_ticket
from tests.live.conftest import Happen


class CountedHistory:
    """PostgreSQL, and how often it was asked."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self.asked = 0

    def __call__(self, thread_id: UUID, after: int) -> list[EventFact]:
        self.asked += 1
        with self._container.transaction() as session:
            return events_after(session, thread_id, after)


@pytest.fixture
def ticket(container: Container) -> MadeTicket:
    return make_ticket(container)


@pytest.fixture
def history(container: Container) -> CountedHistory:
    return CountedHistory(container)


def reader(container: Container, history: CountedHistory, ticket: MadeTicket, last: int = 0) -> ThreadReader:
    return ThreadReader(container.redis, history, ticket.thread_id, last)


def numbers(events: list[EventFact]) -> list[int]:
    return [event.seq for event in events]


def test_a_whole_stream_is_enough(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen
) -> None:
    happen(ticket, 4)
    page = reader(container, history, ticket)
    assert numbers(page.read()) == [1, 2, 3, 4, 5]
    assert page.read() == []
    happen(ticket, 2)
    assert numbers(page.read(at_least=7)) == [6, 7]
    assert history.asked == 0


def test_two_pages_that_join_at_different_times_see_the_same(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen
) -> None:
    early = reader(container, history, ticket)
    seen = numbers(early.read())
    happen(ticket, 3)
    late = reader(container, history, ticket, last=2)
    assert seen + numbers(early.read()) == [1, 2, 3, 4]
    assert numbers(late.read()) == [3, 4]


def test_a_hole_is_filled_from_postgresql(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen
) -> None:
    happen(ticket, 5)
    container.redis.xdel(thread_stream(ticket.thread_id), "3-0")
    assert numbers(reader(container, history, ticket, last=1).read()) == [2, 3, 4, 5, 6]
    assert history.asked == 1


def test_a_wiped_stream_is_filled_from_postgresql(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen
) -> None:
    happen(ticket, 2)
    page = reader(container, history, ticket)
    page.read()
    happen(ticket, 2)
    container.redis.flushall()
    happen(ticket, 1)
    assert numbers(page.read()) == [4, 5, 6]
    assert page.read() == []


def test_what_was_never_published_is_found_by_its_number(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen
) -> None:
    happen(ticket, 2)
    container.redis.xdel(thread_stream(ticket.thread_id), "3-0")
    page = reader(container, history, ticket, last=2)
    assert page.read() == []
    assert numbers(page.read(at_least=3)) == [3]


def test_a_number_without_a_row_is_no_event(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen
) -> None:
    happen(ticket, 1)
    with container.transaction() as session:
        session.execute(text("UPDATE threads SET last_seq = last_seq + 2"))
    happen(ticket, 1)
    page = reader(container, history, ticket)
    assert numbers(page.read()) == [1, 2, 5]
    happen(ticket, 1)
    assert numbers(page.read()) == [6]


def test_without_redis_postgresql_answers_alone(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen, tmp_path: object
) -> None:
    happen(ticket, 2)
    nowhere = Redis.from_url(f"unix://{tmp_path}/nobody.sock")
    page = ThreadReader(nowhere, history, ticket.thread_id, 1)
    assert numbers(page.read()) == [2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_any_loss_and_any_pace_give_each_event_once_in_order(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen, seed: int
) -> None:
    choose = random.Random(seed)  # noqa: S311 - a test that can be repeated
    page, seen, written = reader(container, history, ticket), [], 1
    for _ in range(12):
        grown = choose.randint(0, 3)
        happen(ticket, grown)
        written += grown
        for lost in choose.sample(range(1, written + 1), k=min(written, choose.randint(0, 3))):
            container.redis.xdel(thread_stream(ticket.thread_id), f"{lost}-0")
        if choose.random() < 0.2:
            container.redis.flushall()
        seen += numbers(page.read(at_least=written))
    assert seen == list(range(1, written + 1))


@pytest.mark.parametrize("wiped", [False, True])
def test_a_number_that_no_event_has_reached_is_not_believed(
    container: Container, history: CountedHistory, ticket: MadeTicket, happen: Happen, wiped: bool
) -> None:
    happen(ticket, 2)
    if wiped:
        container.redis.flushall()
    page = reader(container, history, ticket, last=10**18 - 1)
    assert numbers(page.read()) == [1, 2, 3]
    happen(ticket, 1)
    assert numbers(page.read(at_least=4)) == [4]
