"""Whoever comes second reads who was first, to what, and when: a person, a token, a command, the customer, nobody."""

import re
from collections.abc import Callable
from uuid import UUID

import pytest
from sqlalchemy import func, update

from app.bootstrap import Container
from app.clock import now
from app.review import service
from app.review.moved import Moved, run_told, ticket_told, who_moved
from app.review.ticket_state import set_ticket_status
from app.runs.admin import take_out
from app.runs.lifecycle import RunMoved
from app.runs.models import Run, RunStatus
from app.runs.recovery import retry_due
from app.tickets.lifecycle import TicketMoved
from app.tickets.models import TicketStatus
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.intake.writing import write

PLACES = re.compile(r"%\((\w+)\)s")
SCRIPT = "shop-crm"
COMMAND = "flask runs retry"


@pytest.mark.parametrize("who", ["李岚", None])
def test_every_status_has_a_sentence_with_its_time(who: str | None) -> None:
    told = [
        *(run_told(status, who, now()) for status in RunStatus),
        *(ticket_told(status, who, now()) for status in TicketStatus),
    ]
    for one in told:
        assert "time" in PLACES.findall(one.text)
        assert who or "who" not in PLACES.findall(one.text)
    assert len({one.text for one in told}) == len(told)


Act = Callable[[Container, MadeTicket, UUID], None]


def stop(container: Container, made: MadeTicket, staff_id: UUID) -> None:
    with container.transaction() as session:
        service.cancel_run(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id)


def stop_by_token(container: Container, made: MadeTicket, _: UUID) -> None:
    with container.transaction() as session:
        service.cancel_run(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=None, token=SCRIPT)


def set_aside(container: Container, made: MadeTicket, staff_id: UUID) -> None:
    with container.transaction() as session:
        take_out(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id)


def start_over(container: Container, made: MadeTicket, staff_id: UUID) -> None:
    with container.transaction() as session:
        plan = container.run_plan(by=staff_id)
        service.regenerate(session, ticket_id=made.ticket_id, staff_id=staff_id, hint="", plan=plan)


def start_over_by_command(container: Container, made: MadeTicket, _: UUID) -> None:
    with container.transaction() as session:
        plan = container.run_plan()
        service.regenerate(session, ticket_id=made.ticket_id, staff_id=None, hint="", plan=plan, command=COMMAND)


def write_by_hand(container: Container, made: MadeTicket, staff_id: UUID) -> None:
    with container.transaction() as session:
        service.start_manual(session, ticket_id=made.ticket_id, staff_id=staff_id, plan=container.run_plan(by=staff_id))


def fail(container: Container, made: MadeTicket, _: UUID) -> None:
    with container.transaction() as session:
        values = {"status": RunStatus.FAILED, "moved_at": func.now(), "ended_at": func.now()}
        session.execute(update(Run).where(Run.id == made.run_id).values(**values))


def fail_and_start_over_by_command(container: Container, made: MadeTicket, staff_id: UUID) -> None:
    fail(container, made, staff_id)
    start_over_by_command(container, made, staff_id)


def fail_and_be_retried(container: Container, made: MadeTicket, staff_id: UUID) -> None:
    fail(container, made, staff_id)
    with container.transaction() as session:
        session.execute(update(Run).where(Run.id == made.run_id).values(retry_at=func.now()))
    assert retry_due(container.transaction, container.run_plan()) == 1


def customer_writes(container: Container, made: MadeTicket, _: UUID) -> None:
    with container.transaction() as session:
        session.execute(update(Run).where(Run.id == made.run_id).values(status=RunStatus.RUNNING))
    write(container, made.ticket_id)


@pytest.mark.parametrize(
    ("first", "to", "by", "sentence"),
    [
        (stop, "cancelled", "ann", "ann stopped this draft at …."),
        (stop_by_token, "cancelled", SCRIPT, "shop-crm stopped this draft at …."),
        (set_aside, "failed", "ann", "ann set this draft aside at …; the ticket waits for a person."),
        (start_over, "superseded", "ann", "ann started over at …, so this draft is out of date."),
        (start_over_by_command, "superseded", COMMAND, f"{COMMAND} started over at …, so this draft is out of date."),
        (write_by_hand, "superseded", "ann", "ann began to write the reply at …, so this draft is out of date."),
        (fail, "failed", None, "This draft failed at …."),
        (
            fail_and_start_over_by_command,
            "failed",
            None,
            f"{COMMAND} started over at …, so this draft is out of date.",
        ),
        (
            fail_and_be_retried,
            "failed",
            None,
            "This draft did not come about; it was started once more by itself at ….",
        ),
        (customer_writes, "superseded", None, "The customer has written again, at …."),
    ],
)
def test_who_was_first_at_a_run(container: Container, first: Act, to: str, by: str | None, sentence: str) -> None:
    made, ann = make_ticket(container), make_staff(container, "ann")
    first(container, made, ann)
    with container.transaction() as session, pytest.raises(RunMoved) as refused:
        service.cancel_run(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=make_staff(container))
    moved = told(container, refused.value)
    with container.transaction() as session:
        moved_at = session.get_one(Run, made.run_id).moved_at
    assert (moved.to, moved.by, moved.at, filled(moved)) == (to, by, moved_at, sentence)


def test_a_run_that_nobody_has_begun_was_asked_for_at_a_time(container: Container) -> None:
    made, staff_id = make_ticket(container), make_staff(container)
    with container.transaction() as session, pytest.raises(RunMoved) as refused:
        service.escalate(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id, reason="急")
    moved = told(container, refused.value)
    assert (moved.to, moved.by) == ("created", None)
    assert filled(moved) == "This draft was asked for at … and has not been begun yet."


def close(container: Container, made: MadeTicket, staff_id: UUID | None, token: str | None = None) -> None:
    with container.transaction() as session:
        target = TicketStatus.CLOSED
        set_ticket_status(session, ticket_id=made.ticket_id, target=target, staff_id=staff_id, token=token)


def test_who_was_first_at_a_ticket(container: Container) -> None:
    made, ann = make_ticket(container), make_staff(container, "ann")
    close(container, made, ann)
    assert second(container, made) == ("closed", "ann", "ann closed this ticket at ….")
    with container.transaction() as session:
        set_ticket_status(session, ticket_id=made.ticket_id, target=TicketStatus.PENDING, staff_id=ann)
    close(container, made, None, SCRIPT)
    assert second(container, made) == ("closed", SCRIPT, "shop-crm closed this ticket at ….")


def second(container: Container, made: MadeTicket) -> tuple[str, str | None, str]:
    """Ask for a draft on a ticket that is done; returns what is said of it."""
    staff_id, plan = make_staff(container), container.run_plan()
    with container.transaction() as session, pytest.raises(TicketMoved) as refused:
        service.regenerate(session, ticket_id=made.ticket_id, staff_id=staff_id, hint="", plan=plan)
    moved = told(container, refused.value)
    return moved.to, moved.by, filled(moved)


def told(container: Container, error: RunMoved | TicketMoved) -> Moved:
    with container.sessions() as session:
        return who_moved(session, error)


def filled(moved: Moved) -> str:
    return moved.told.text % {"who": moved.told.who, "time": "…"}
