"""What a customer writes on a ticket that there is: once a key, answered once, and nothing stale goes on."""

from datetime import timedelta
from uuid import UUID

import pytest
from rq import Queue
from sqlalchemy import func, select, update

from app.agent.values import Priority
from app.bootstrap import Container
from app.errors import NotFound
from app.ids import new_id
from app.intake.fields import CONTENT_MAX, InvalidFields
from app.intake.keys import KeyReused
from app.intake.messages import MessageWindow
from app.intake.models import IntakeKey
from app.live.job_queue import RUNS
from app.review import service
from app.review.service import escalate
from app.review.ticket_class import set_class
from app.runs.models import Event, Run, RunStatus
from app.staff.models import AuditEntry
from app.tickets.models import Ticket, TicketMessage, TicketStatus
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.intake.writing import (
    WINDOW,
    end_run,
    events_of,
    messages_of,
    run_of,
    runs_of,
    set_status,
    ticket_of,
    write,
)
from tests.review.factories import make_desk


@pytest.fixture
def made(container: Container) -> MadeTicket:
    return make_ticket(container)


def wait_left(container: Container, run_id: UUID) -> float:
    """Return how many seconds after its making a run may be claimed."""
    with container.transaction() as session:
        waits = func.extract("epoch", Run.not_before - Run.created_at)
        return float(session.scalars(select(waits).where(Run.id == run_id)).one())


def make_older(container: Container, run_id: UUID, seconds: float) -> None:
    with container.transaction() as session:
        older = Run.created_at - timedelta(seconds=seconds)
        session.execute(update(Run).where(Run.id == run_id).values(created_at=older))


def test_a_message_is_kept_in_order_and_told(container: Container, made: MadeTicket) -> None:
    received = write(container, made.ticket_id, "  还有一件事  ")
    assert (received.ticket_number, received.number, received.created, received.follow_up) == (
        made.number,
        2,
        True,
        False,
    )
    first, second = messages_of(container, made.ticket_id)
    assert (second.id, second.kind, second.body) == (received.message_id, "customer", "还有一件事")
    ticket = ticket_of(container, made.ticket_id)
    assert (ticket.last_customer_message_id, ticket.version) == (second.id, 2)
    assert ticket.last_customer_message_at >= second.created_at > first.created_at
    event = events_of(container, made.ticket_id)[1]
    assert (event.type, event.payload) == ("message_received", {"message": str(second.id)})


def test_a_run_that_nobody_has_begun_takes_the_message_along(container: Container, made: MadeTicket) -> None:
    received = write(container, made.ticket_id)
    (run,) = runs_of(container, made.ticket_id)
    assert (run.id, run.status, run.last_customer_message_id) == (received.run_id, "created", received.message_id)
    assert 29 < wait_left(container, run.id) < 120


def test_messages_within_the_window_become_one_run_and_the_wait_has_a_cap(
    container: Container, made: MadeTicket
) -> None:
    end_run(container, made.run_id, RunStatus.RUNNING)
    run_id = write(container, made.ticket_id, "一").run_id
    assert run_id is not None
    for number, age in enumerate((10, 10, 80)):
        make_older(container, run_id, age)
        assert write(container, made.ticket_id, f"还有{number}").run_id == run_id
    assert wait_left(container, run_id) == 120
    make_older(container, run_id, 500)
    assert write(container, made.ticket_id, "又一条").run_id == run_id
    assert wait_left(container, run_id) == 120
    assert [run.status for run in runs_of(container, made.ticket_id)] == ["superseded", "created"]


@pytest.mark.parametrize(
    "status",
    [RunStatus.RETRYING, RunStatus.RUNNING, RunStatus.WAITING_FOR_REVIEW, RunStatus.WAITING_FOR_ESCALATION],
)
def test_a_run_on_older_words_gives_way(container: Container, made: MadeTicket, status: RunStatus) -> None:
    end_run(container, made.run_id, status)
    received = write(container, made.ticket_id)
    old, new = runs_of(container, made.ticket_id)
    assert (old.status, old.moved_by, old.ended_at is not None) == ("superseded", None, True)
    assert (new.id, new.status, new.origin, new.retry_from) == (received.run_id, "created", "message", None)
    assert new.last_customer_message_id == received.message_id
    assert wait_left(container, new.id) == WINDOW.wait_s
    told = [(event.type, event.run_id) for event in events_of(container, made.ticket_id)[1:]]
    assert told == [("message_received", None), ("run_superseded", old.id), ("run_created", new.id)]
    assert events_of(container, made.ticket_id)[2].payload == {"reason": "customer_message"}


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.COMPLETED])
def test_a_run_that_has_ended_is_followed(container: Container, made: MadeTicket, status: RunStatus) -> None:
    end_run(container, made.run_id, status)
    received = write(container, made.ticket_id)
    old, new = runs_of(container, made.ticket_id)
    assert (old.status, new.id, new.origin) == (status, received.run_id, "message")


def test_the_cap_holds_for_the_first_message_too(container: Container, made: MadeTicket) -> None:
    end_run(container, made.run_id)
    run_id = write(container, made.ticket_id, window=MessageWindow(120, 15, 14)).run_id
    assert run_id is not None
    assert wait_left(container, run_id) <= 15


def test_without_a_window_the_run_starts_at_once(container: Container, made: MadeTicket) -> None:
    end_run(container, made.run_id)
    run_id = write(container, made.ticket_id, window=MessageWindow(0, 0, 14)).run_id
    assert run_of(container, run_id).not_before is None
    assert str(run_id) in [job.args[0] for job in Queue(RUNS, connection=container.redis).jobs]


def test_a_run_with_a_window_waits_for_the_sweep(container: Container, made: MadeTicket) -> None:
    end_run(container, made.run_id)
    run_id = write(container, made.ticket_id).run_id
    assert str(run_id) not in [job.args[0] for job in Queue(RUNS, connection=container.redis).jobs]


def test_a_person_who_writes_the_reply_goes_on_writing(container: Container) -> None:
    desk = make_desk(container, status=RunStatus.FAILED, draft=False)
    with container.transaction() as session:
        plan = container.run_plan()
        manual = service.start_manual(session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, plan=plan)
        service.save_composer(session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, body="您好，")
    run = run_of(container, write(container, desk.ticket_id).run_id)
    assert (run.planner, run.status, run.origin, run.started_by) == (
        "manual",
        "waiting_for_review",
        "message",
        desk.staff_id,
    )
    assert run_of(container, manual).status == "superseded"


@pytest.mark.parametrize("status", [TicketStatus.RESOLVED, TicketStatus.WAITING_FOR_CUSTOMER, TicketStatus.CLOSED])
def test_a_message_opens_the_ticket_again(container: Container, made: MadeTicket, status: TicketStatus) -> None:
    end_run(container, made.run_id, RunStatus.COMPLETED)
    set_status(container, made.ticket_id, status, days_ago=13)
    received = write(container, made.ticket_id)
    ticket = ticket_of(container, made.ticket_id)
    assert (ticket.status, ticket.moved_by, ticket.resolved_at) == ("pending", None, None)
    moved = next(event for event in events_of(container, made.ticket_id) if event.type == "ticket_moved")
    assert moved.payload == {"from": status, "to": "pending", "reason": "customer_message"}
    assert run_of(container, received.run_id).status == "created"


@pytest.mark.parametrize("status", [TicketStatus.PENDING, TicketStatus.PROCESSING])
def test_an_open_ticket_is_not_moved(container: Container, made: MadeTicket, status: TicketStatus) -> None:
    set_status(container, made.ticket_id, status)
    write(container, made.ticket_id)
    assert ticket_of(container, made.ticket_id).status == status
    assert "ticket_moved" not in [event.type for event in events_of(container, made.ticket_id)]


def test_spam_stays_spam_and_the_message_is_kept(container: Container, made: MadeTicket) -> None:
    end_run(container, made.run_id)
    set_status(container, made.ticket_id, TicketStatus.SPAM)
    received = write(container, made.ticket_id)
    assert (received.run_id, received.number) == (None, 2)
    ticket = ticket_of(container, made.ticket_id)
    assert (ticket.status, ticket.last_customer_message_id) == ("spam", received.message_id)
    assert len(runs_of(container, made.ticket_id)) == 1


def test_a_ticket_closed_for_too_long_is_followed_by_another(container: Container, made: MadeTicket) -> None:
    end_run(container, made.run_id)
    set_status(container, made.ticket_id, TicketStatus.CLOSED, days_ago=15)
    received = write(container, made.ticket_id, key="shop-msg-1")
    assert (received.follow_up, received.number, received.created) == (True, 1, True)
    old, new = ticket_of(container, made.ticket_id), ticket_of(container, received.ticket_id)
    assert (old.status, new.status, new.follow_up_of) == ("closed", "pending", old.id)
    assert (new.customer_id, new.channel, new.subject) == (old.customer_id, old.channel, old.subject)
    assert new.last_customer_message_id == received.message_id
    assert [(run.id, run.origin) for run in runs_of(container, new.id)] == [(received.run_id, "message")]
    told = events_of(container, made.ticket_id)[-1]
    assert (told.type, told.payload["follow_up"]) == ("message_received", str(new.id))
    again = write(container, made.ticket_id, key="shop-msg-1")
    assert (again.message_id, again.follow_up, again.created) == (received.message_id, True, False)
    further = write(container, made.ticket_id)
    assert (further.ticket_id, further.number, further.follow_up) == (new.id, 2, True)
    end_run(container, received.run_id)
    set_status(container, new.id, TicketStatus.CLOSED, days_ago=20)
    third = write(container, made.ticket_id)
    assert ticket_of(container, third.ticket_id).follow_up_of == new.id


def test_one_key_is_one_message(container: Container, made: MadeTicket) -> None:
    first = write(container, made.ticket_id, " 你好 ", key="shop-msg-1")
    again = write(container, made.ticket_id, "你好", key="shop-msg-1")
    assert (again.message_id, again.number, again.run_id) == (first.message_id, 2, first.run_id)
    assert (first.created, again.created) == (True, False)
    other = make_ticket(container)
    for ticket_id, body in ((made.ticket_id, "别的"), (other.ticket_id, "你好")):
        with pytest.raises(KeyReused):
            write(container, ticket_id, body, key="shop-msg-1")
    assert write(container, other.ticket_id, "你好", key="shop-msg-1", source="crm").created
    assert len(messages_of(container, made.ticket_id)) == 2


def test_a_key_that_made_a_ticket_makes_no_message(container: Container, made: MadeTicket) -> None:
    with container.transaction() as session:
        source, key = session.execute(select(IntakeKey.source, IntakeKey.key)).one()
    with pytest.raises(KeyReused):
        write(container, made.ticket_id, key=key, source=source)


@pytest.mark.parametrize("body", ["", "  ", "a\x00b", "字" * (CONTENT_MAX + 1)])
def test_messages_that_are_refused_leave_nothing(container: Container, made: MadeTicket, body: str) -> None:
    with pytest.raises(InvalidFields) as refused:
        write(container, made.ticket_id, body)
    assert refused.value.errors[0].field == "content"
    assert len(messages_of(container, made.ticket_id)) == 1


def test_a_ticket_that_is_not_there(container: Container) -> None:
    with pytest.raises(NotFound):
        write(container, new_id())


def test_what_a_person_wrote_down_is_told_of(container: Container, made: MadeTicket) -> None:
    staff_id = make_staff(container)
    received = write(container, made.ticket_id, staff_id=staff_id)
    assert messages_of(container, made.ticket_id)[1].staff_id == staff_id
    assert events_of(container, made.ticket_id)[1].payload["by"] == str(staff_id)
    with container.transaction() as session:
        entry = session.scalars(select(AuditEntry)).one()
        assert (entry.action, entry.staff_id, entry.detail) == (
            "message_recorded",
            staff_id,
            {"message": str(received.message_id), "token": None},
        )


def test_a_persons_class_and_an_escalation_survive(container: Container) -> None:
    desk = make_desk(container)
    with container.transaction() as session:
        escalate(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason="需要法务确认")
        version = session.get_one(Ticket, desk.ticket_id).version
        set_class(
            session,
            ticket_id=desk.ticket_id,
            staff_id=desk.staff_id,
            seen_version=version,
            priority=Priority.URGENT,
        )
    write(container, desk.ticket_id)
    ticket = ticket_of(container, desk.ticket_id)
    assert (ticket.escalation_reason, ticket.priority, ticket.priority_set_by) == ("需要法务确认", "urgent", "person")
    assert ticket.escalated_at is not None


def test_a_transaction_that_fails_leaves_nothing(container: Container, made: MadeTicket) -> None:
    def counts() -> list[int]:
        with container.transaction() as session:
            tables = (TicketMessage, Run, Event)
            return [session.scalars(select(func.count()).select_from(table)).one() for table in tables]

    before = counts()
    with pytest.raises(NotFound):
        write(container, new_id(), key="shop-msg-1")
    assert counts() == before
    assert write(container, made.ticket_id, key="shop-msg-1").created
