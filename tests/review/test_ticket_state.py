"""A person ends or reopens a ticket: what was at work stops, nothing newer is passed over, and it is on record."""

from collections.abc import Callable

import pytest
from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.db.base import Base
from app.delivery.models import Delivery
from app.errors import Conflict
from app.review import service
from app.review.ticket_state import SeenTicket, set_ticket_status
from app.runs.models import ACTIVE, Event, Run, RunStatus
from app.staff.models import AuditEntry
from app.tickets.composer import ComposerDraft
from app.tickets.lifecycle import TicketMoved
from app.tickets.models import Ticket, TicketStatus
from tests.delivery.test_deliver import approved, state
from tests.factories import make_staff
from tests.intake.writing import events_of, run_of, set_status, ticket_of, write
from tests.review.factories import DRAFT_TEXT, Desk, make_desk

DONE = [TicketStatus.RESOLVED, TicketStatus.CLOSED, TicketStatus.SPAM]


def move(container: Container, desk: Desk, target: TicketStatus, seen: SeenTicket | None = None) -> bool:
    with container.transaction() as session:
        return set_ticket_status(session, ticket_id=desk.ticket_id, target=target, staff_id=desk.staff_id, seen=seen)


def seen_of(container: Container, desk: Desk) -> SeenTicket:
    ticket = ticket_of(container, desk.ticket_id)
    return SeenTicket(ticket.status, ticket.last_customer_message_id)


def rows(container: Container) -> list[object]:
    """Return all that a move may write."""
    with container.transaction() as session:
        tables: tuple[type[Base], ...] = (Event, AuditEntry, ComposerDraft)
        counts: list[object] = [session.scalars(select(func.count()).select_from(table)).one() for table in tables]
        for column in (Ticket.version, Run.status, Delivery.state):
            counts.append(session.scalars(select(column)).all())
        return counts


@pytest.mark.parametrize("target", DONE)
@pytest.mark.parametrize("status", ACTIVE)
def test_ending_a_ticket_cancels_its_run(container: Container, target: TicketStatus, status: RunStatus) -> None:
    desk = make_desk(container, status=status)
    assert move(container, desk, target, seen_of(container, desk))
    ticket, run = ticket_of(container, desk.ticket_id), run_of(container, desk.run_id)
    assert (ticket.status, ticket.moved_by, ticket.version) == (target, desk.staff_id, 2)
    assert (ticket.resolved_at is not None) == (target == "resolved")
    assert (run.status, run.moved_by) == ("cancelled", desk.staff_id)
    told = [(event.type, event.payload) for event in events_of(container, desk.ticket_id)[1:]]
    by = str(desk.staff_id)
    assert told == [
        ("ticket_moved", {"from": "pending", "to": target, "reason": "person", "by": by}),
        ("run_cancelled", {"by": by, "reason": f"ticket_{target}"}),
    ]
    with container.transaction() as session:
        assert [(entry.action, entry.staff_id) for entry in session.scalars(select(AuditEntry))] == [
            ("ticket_moved", desk.staff_id)
        ]


def test_ending_a_ticket_takes_a_held_reply_back(container: Container) -> None:
    desk, delivery_id = approved(container)
    move(container, desk, TicketStatus.CLOSED)
    assert state(container, delivery_id) == "recalled"
    with container.transaction() as session:
        assert session.scalars(select(ComposerDraft.body)).one() == DRAFT_TEXT


def test_an_ended_ticket_is_opened_again(container: Container) -> None:
    desk = make_desk(container)
    move(container, desk, TicketStatus.RESOLVED)
    move(container, desk, TicketStatus.PENDING, seen_of(container, desk))
    ticket = ticket_of(container, desk.ticket_id)
    assert (ticket.status, ticket.resolved_at) == ("pending", None)
    with container.transaction() as session:
        run_id = service.regenerate(
            session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, hint="", plan=container.run_plan()
        )
    assert run_of(container, run_id).status == "created"


def test_ending_a_ticket_ends_its_escalation(container: Container) -> None:
    desk = make_desk(container)
    with container.transaction() as session:
        service.escalate(
            session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason="需要法务确认"
        )
    move(container, desk, TicketStatus.CLOSED)
    ticket = ticket_of(container, desk.ticket_id)
    assert (ticket.escalated_at, ticket.escalation_reason) == (None, None)


def colleague_closes(container: Container, desk: Desk) -> None:
    lead = make_staff(container, "lead")
    with container.transaction() as session:
        set_ticket_status(session, ticket_id=desk.ticket_id, target=TicketStatus.CLOSED, staff_id=lead)


def customer_writes(container: Container, desk: Desk) -> None:
    write(container, desk.ticket_id)


@pytest.mark.parametrize(("first", "error"), [(colleague_closes, TicketMoved), (customer_writes, Conflict)])
def test_what_came_first_stands_and_nothing_is_written(
    container: Container, first: Callable[[Container, Desk], None], error: type[Conflict]
) -> None:
    desk = make_desk(container)
    seen = seen_of(container, desk)
    first(container, desk)
    before = rows(container)
    with pytest.raises(error) as refused:
        move(container, desk, TicketStatus.RESOLVED, seen)
    assert rows(container) == before
    if isinstance(refused.value, TicketMoved):
        with container.transaction() as session:
            assert refused.value.by == make_staff(container, "lead")
            assert refused.value.at == session.get_one(Ticket, desk.ticket_id).moved_at
        assert refused.value.ticket_status == "closed"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (TicketStatus.CLOSED, TicketStatus.RESOLVED),
        (TicketStatus.SPAM, TicketStatus.CLOSED),
        (TicketStatus.SPAM, TicketStatus.RESOLVED),
        (TicketStatus.PROCESSING, TicketStatus.PENDING),
        (TicketStatus.WAITING_FOR_CUSTOMER, TicketStatus.PENDING),
    ],
)
def test_moves_that_a_person_may_not_make_write_nothing(
    container: Container, source: TicketStatus, target: TicketStatus
) -> None:
    desk = make_desk(container, status=RunStatus.CANCELLED)
    set_status(container, desk.ticket_id, source)
    before = rows(container)
    with pytest.raises(TicketMoved):
        move(container, desk, target)
    assert rows(container) == before


def test_a_second_click_changes_nothing(container: Container) -> None:
    desk = make_desk(container)
    seen = seen_of(container, desk)
    assert move(container, desk, TicketStatus.CLOSED, seen)
    before = rows(container)
    assert not move(container, desk, TicketStatus.CLOSED, seen)
    assert rows(container) == before


def test_the_agents_claim_is_no_reason_to_refuse(container: Container) -> None:
    desk = make_desk(container, status=RunStatus.RUNNING)
    seen = seen_of(container, desk)
    with container.transaction() as session:
        session.execute(update(Ticket).values(status="processing"))
    assert move(container, desk, TicketStatus.CLOSED, seen)
