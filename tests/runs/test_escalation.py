"""Why a ticket was escalated, and since when: what was said first stays until the ticket is done."""

from collections.abc import Callable
from uuid import UUID

import pytest

from app.bootstrap import Container
from app.intake.messages import MessageWindow
from app.review import service
from app.runs.admin import take_out
from app.runs.ledger import Happened, Move
from app.runs.models import EventType, RunStatus
from tests.factories import make_staff, make_ticket
from tests.intake.writing import write
from tests.runs.looking import run_of, ticket_of
from tests.runs.test_every_path import working

REASON = "需要法务确认"
NOT_COVERED = "The knowledge base does not answer this ticket."


def a_worker_escalates(container: Container, run_id: UUID) -> None:
    """A worker finds that a person must answer."""
    event = Happened(EventType.RUN_ESCALATED, {"reason": NOT_COVERED})
    with working(container.settings) as workers:
        claimed = workers.claim(run_id)
        assert claimed is not None
        workers.end(claimed, Move(RunStatus.WAITING_FOR_ESCALATION, [event], reason=NOT_COVERED))


def an_operator_takes_it_out(container: Container, run_id: UUID) -> None:
    """An operator sets the run aside, for a person."""
    ticket_id, staff_id = run_of(container, run_id).ticket_id, make_staff(container)
    with container.transaction() as session:
        take_out(session, ticket_id=ticket_id, run_id=run_id, staff_id=staff_id)


@pytest.mark.parametrize("act", [a_worker_escalates, an_operator_takes_it_out])
def test_a_persons_escalation_keeps_its_reason_and_time(
    container: Container, act: Callable[[Container, UUID], None]
) -> None:
    staff_id = make_staff(container, "ann")
    made = make_ticket(container, run_status=RunStatus.WAITING_FOR_REVIEW)
    who = {"ticket_id": made.ticket_id, "run_id": made.run_id, "staff_id": staff_id}
    with container.transaction() as session:
        service.escalate(session, **who, reason=REASON)
    since = ticket_of(container, made.ticket_id).escalated_at
    act(container, write(container, made.ticket_id, window=MessageWindow(0, 0, 14)).run_id)
    ticket = ticket_of(container, made.ticket_id)
    assert (ticket.escalation_reason, ticket.escalated_at) == (REASON, since)
