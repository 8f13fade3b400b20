"""A hub on the test services, and a way to make events."""

from collections.abc import Callable, Iterator

import pytest

from app.bootstrap import Container
from app.live.hub import Hub
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.models import EventType
from app.settings import Settings
from tests.factories import MadeTicket

Happen = Callable[..., None]


@pytest.fixture
def hub(settings: Settings, container: Container) -> Iterator[Hub]:
    """A hub of this test; it starts with its first subscription."""
    made = Hub(settings.redis_url)
    yield made
    made.close()


@pytest.fixture
def happen(container: Container) -> Happen:
    """`happen(ticket, n)` appends n events in a transaction each, so that each is published by itself."""

    def append(ticket: MadeTicket, count: int = 1, type_: EventType = EventType.TICKET_CHANGED) -> None:
        for _ in range(count):
            with container.transaction() as session:
                append_events(session, lock_thread(session, ticket.ticket_id), [NewEvent(type_)])

    return append
