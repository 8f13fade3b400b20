"""A hub on the test services, and a way to make events."""

from collections.abc import Iterator
from typing import Protocol
from uuid import UUID

import pytest

from app.bootstrap import Container
from app.live.hub import Hub
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.models import EventType
from app.settings import Settings


class OnTicket(Protocol):
    """Anything that names a ticket."""

    @property
    def ticket_id(self) -> UUID:
        """The ticket."""


class Happen(Protocol):
    """Makes things happen on a ticket."""

    def __call__(self, ticket: OnTicket, count: int = 1, type_: EventType = EventType.TICKET_CHANGED) -> None:
        """Append `count` events of one type, a transaction each."""


@pytest.fixture
def hub(settings: Settings, container: Container) -> Iterator[Hub]:
    """A hub of this test; it starts with its first subscription."""
    made = Hub(settings.redis_url)
    yield made
    made.close()


@pytest.fixture
def happen(container: Container) -> Happen:
    """`happen(ticket, n)` appends n events in a transaction each, so that each is published by itself."""

    def append(ticket: OnTicket, count: int = 1, type_: EventType = EventType.TICKET_CHANGED) -> None:
        for _ in range(count):
            with container.transaction() as session:
                append_events(session, lock_thread(session, ticket.ticket_id), [NewEvent(type_)])

    return append
