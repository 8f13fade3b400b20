"""A reply that is still held comes back when the customer writes again; one that is leaving is told to have crossed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.delivery.models import Delivery, DeliveryState
from app.delivery.recall import Recalled, recall_replies
from app.delivery.service import deliver
from app.review import service
from app.runs.events import lock_thread
from app.runs.models import RunStatus
from app.tickets.composer import ComposerDraft
from app.tickets.models import MessageKind, Ticket, TicketMessage
from tests.delivery.channels import Broken, Outside, Refusing
from tests.delivery.test_deliver import approved, send, state
from tests.intake.writing import end_run, events_of, messages_of, run_of, runs_of, ticket_of, write
from tests.review.factories import DRAFT_TEXT, Desk, add_draft, make_desk


def start_sending(container: Container, delivery_id: UUID) -> None:
    """Leave a reply as its sender does between claim and end."""
    with container.transaction() as session:
        lease = func.now() + func.make_interval(0, 0, 0, 0, 1)
        values = {"state": DeliveryState.SENDING, "attempts": 1, "lease_until": lease}
        session.execute(update(Delivery).where(Delivery.id == delivery_id).values(**values))


def typed(container: Container, desk: Desk) -> str | None:
    with container.transaction() as session:
        kept = session.get(ComposerDraft, (desk.ticket_id, desk.staff_id))
        return kept.body if kept else None


class Writing(Outside):
    """A channel during whose send the customer writes again."""

    def __init__(self, write_now: Callable[[], object], end: Outside | None = None) -> None:
        super().__init__()
        self._write_now = write_now
        self._end = end or Outside()

    def send(self, delivery_id: UUID, payload: object) -> None:
        self._write_now()
        self._end.send(delivery_id, payload)  # type: ignore[arg-type]


def test_a_held_reply_comes_back_to_its_writer(container: Container) -> None:
    desk, delivery_id = approved(container)
    received = write(container, desk.ticket_id)
    assert state(container, delivery_id) == "recalled"
    assert typed(container, desk) == DRAFT_TEXT
    recalled = next(event for event in events_of(container, desk.ticket_id) if event.type == "reply_recalled")
    assert (recalled.run_id, recalled.payload["reason"]) == (desk.run_id, "customer_message")
    assert run_of(container, desk.run_id).status == "completed"
    assert run_of(container, received.run_id).status == "created"
    ticket = ticket_of(container, desk.ticket_id)
    assert (ticket.status, ticket.reply_crossed_at) == ("pending", None)
    outside = Outside()
    send(container, delivery_id, [outside])
    assert outside.left == []


def test_what_the_writer_has_begun_since_is_kept(container: Container) -> None:
    desk, _ = approved(container)
    with container.transaction() as session:
        session.add(ComposerDraft(ticket_id=desk.ticket_id, staff_id=desk.staff_id, body="新写的"))
    write(container, desk.ticket_id)
    assert typed(container, desk) == "新写的"


def test_saves_of_the_text_that_came_back_are_kept(container: Container) -> None:
    desk, _ = approved(container)
    write(container, desk.ticket_id)
    with container.transaction() as session:
        service.save_composer(session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, body="改一改")
    assert typed(container, desk) == "改一改"


def test_a_reply_that_crossed_leaves_the_ticket_open(container: Container) -> None:
    desk, delivery_id = approved(container)
    send(container, delivery_id, [Writing(lambda: write(container, desk.ticket_id))])
    assert state(container, delivery_id) == "sent"
    assert [message.kind for message in messages_of(container, desk.ticket_id)] == ["customer", "customer", "reply"]
    ticket = ticket_of(container, desk.ticket_id)
    assert (ticket.status, ticket.resolved_at) == ("pending", None)
    assert ticket.reply_crossed_at is not None
    assert ticket.last_reply_id == messages_of(container, desk.ticket_id)[2].id
    assert [run.status for run in runs_of(container, desk.ticket_id)] == ["completed", "created"]


@pytest.mark.parametrize(("end", "status", "marked"), [(Outside(), "resolved", False), (Refusing(), "pending", True)])
def test_the_mark_goes_with_the_next_reply_that_leaves(
    container: Container, end: Outside, status: str, marked: bool
) -> None:
    desk, first = approved(container)
    send(container, first, [Writing(lambda: write(container, desk.ticket_id))])
    new_run = runs_of(container, desk.ticket_id)[-1].id
    end_run(container, new_run, RunStatus.WAITING_FOR_REVIEW)
    add_draft(container, new_run, DRAFT_TEXT)
    _, second = approved(container, desk)
    send(container, second, [end])
    ticket = ticket_of(container, desk.ticket_id)
    assert (ticket.status, ticket.reply_crossed_at is not None) == (status, marked)


def test_a_reply_that_crosses_keeps_the_escalation(container: Container) -> None:
    desk = make_desk(container)
    with container.transaction() as session:
        service.escalate(
            session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason="需要法务确认"
        )
    _, delivery_id = approved(container, desk)
    send(container, delivery_id, [Writing(lambda: write(container, desk.ticket_id))])
    assert ticket_of(container, desk.ticket_id).escalation_reason == "需要法务确认"


@pytest.mark.parametrize(("end", "marked"), [(Refusing(), False), (Broken(), True)])
def test_a_reply_that_did_not_leave_crossed_nothing(container: Container, end: Outside, marked: bool) -> None:
    desk, delivery_id = approved(container)
    send(container, delivery_id, [Writing(lambda: write(container, desk.ticket_id), end)])
    ticket = ticket_of(container, desk.ticket_id)
    assert ticket.status == "pending"
    assert (ticket.reply_crossed_at is not None) == marked


def test_a_reply_on_its_way_does_not_open_a_ticket_that_a_person_ended(container: Container) -> None:
    desk, delivery_id = approved(container)

    def close() -> None:
        with container.transaction() as session:
            session.execute(update(Ticket).where(Ticket.id == desk.ticket_id).values(status="closed"))

    send(container, delivery_id, [Writing(close)])
    assert ticket_of(container, desk.ticket_id).status == "closed"


def recall(container: Container, desk: Desk) -> Recalled:
    with container.transaction() as session:
        return recall_replies(session, lock_thread(session, desk.ticket_id), reason="test")


def test_nothing_is_taken_back_twice_and_nothing_that_leaves(container: Container) -> None:
    desk, delivery_id = approved(container)
    assert recall(container, desk) == Recalled(1, one_is_leaving=False)
    before = len(events_of(container, desk.ticket_id))
    assert recall(container, desk) == Recalled(0, one_is_leaving=False)
    start_sending(container, delivery_id)
    assert recall(container, desk) == Recalled(0, one_is_leaving=True)
    assert len(events_of(container, desk.ticket_id)) == before


@pytest.mark.parametrize("_round", range(8))
def test_a_recall_and_a_sender_have_one_winner(container: Container, _round: int) -> None:
    desk, delivery_id = approved(container)
    outside, start = Outside(), Barrier(2)

    def sender() -> None:
        start.wait(timeout=10)
        deliver(container.transaction, delivery_id, [outside])

    def recaller() -> Recalled:
        start.wait(timeout=10)
        return recall(container, desk)

    with ThreadPoolExecutor(2) as pool:
        sending, recalling = pool.submit(sender), pool.submit(recaller)
        sending.result(timeout=20)
        taken_back = recalling.result(timeout=20).taken_back
    assert taken_back + len(outside.left) == 1
    assert state(container, delivery_id) == ("recalled" if taken_back else "sent")


def test_a_reply_is_one_message_whatever_crosses_it(container: Container) -> None:
    desk, delivery_id = approved(container)
    send(container, delivery_id, [Writing(lambda: write(container, desk.ticket_id))])
    send(container, delivery_id)
    with container.transaction() as session:
        replies = select(func.count()).where(TicketMessage.kind == MessageKind.REPLY)
        assert session.scalars(replies).one() == 1
