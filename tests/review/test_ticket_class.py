"""What a person says about the class of a ticket: it wins, it is told and recorded, and it never overwrites blindly."""

import pytest
from sqlalchemy import func, select, update

from app.agent.values import Category, Priority
from app.bootstrap import Container
from app.errors import Conflict, NotFound
from app.ids import new_id
from app.review.ticket_class import set_class
from app.runs.models import Event
from app.staff.models import AuditEntry
from app.tickets.models import SetBy, Ticket
from tests.review.factories import Desk, make_desk


@pytest.fixture
def desk(container: Container) -> Desk:
    made = make_desk(container)
    by_ai = {"priority_set_by": SetBy.AI, "category_set_by": SetBy.AI}
    with container.transaction() as session:
        session.execute(update(Ticket).values(version=7, priority="normal", category="refund", **by_ai))
    return made


def choose(container: Container, desk: Desk, *, version: int = 7, **choice: object) -> bool:
    with container.transaction() as session:
        return set_class(
            session,
            ticket_id=desk.ticket_id,
            staff_id=desk.staff_id,
            seen_version=version,
            **choice,  # type: ignore[arg-type]
        )


def class_of(container: Container, desk: Desk) -> tuple[object, ...]:
    with container.transaction() as session:
        ticket = session.get_one(Ticket, desk.ticket_id)
        return ticket.priority, ticket.priority_set_by, ticket.category, ticket.category_set_by, ticket.version


def test_what_differs_becomes_the_persons_and_is_told_and_recorded(container: Container, desk: Desk) -> None:
    assert choose(container, desk, priority=Priority.URGENT, category=Category.REFUND)
    assert class_of(container, desk) == ("urgent", "person", "refund", "ai", 8)
    with container.transaction() as session:
        event = session.scalars(select(Event).order_by(Event.seq.desc())).first()
        assert event is not None
        facts = {"by": str(desk.staff_id), "priority": "urgent", "category": None}
        assert (event.type, event.payload) == ("ticket_changed", facts)
        entry = session.scalars(select(AuditEntry)).one()
        assert (entry.action, entry.staff_id, entry.ticket_id) == ("ticket_class_set", desk.staff_id, desk.ticket_id)
        assert entry.detail == {"priority": "urgent", "category": None}


def test_confirming_makes_the_same_values_the_persons(container: Container, desk: Desk) -> None:
    assert choose(container, desk, priority=Priority.NORMAL, category=Category.REFUND, confirm=True)
    assert class_of(container, desk) == ("normal", "person", "refund", "person", 8)


def test_choosing_what_is_there_changes_nothing(container: Container, desk: Desk) -> None:
    assert not choose(container, desk, priority=Priority.NORMAL)
    assert class_of(container, desk) == ("normal", "ai", "refund", "ai", 7)
    with container.transaction() as session:
        assert session.scalars(select(func.count()).select_from(AuditEntry)).one() == 0


def test_a_ticket_that_moved_on_is_left_alone(container: Container, desk: Desk) -> None:
    with pytest.raises(Conflict):
        choose(container, desk, version=6, priority=Priority.URGENT)
    assert class_of(container, desk) == ("normal", "ai", "refund", "ai", 7)


def test_a_ticket_that_is_not_there(container: Container, desk: Desk) -> None:
    with container.transaction() as session, pytest.raises(NotFound):
        set_class(session, ticket_id=new_id(), staff_id=desk.staff_id, seen_version=1, priority=Priority.URGENT)
