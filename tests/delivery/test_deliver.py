"""A reply leaves once and in order, whatever dies on the way; only what has left resolves the ticket."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from typing import ClassVar
from uuid import UUID

import pytest
from rq import Queue
from sqlalchemy import func, select, text, update

from app.bootstrap import Container
from app.delivery.channels import CHANNELS
from app.delivery.channels.channel import Channel, NotSent
from app.delivery.models import Delivery
from app.delivery.payload import Payload
from app.delivery.queries import is_leaving
from app.delivery.service import MOST_ATTEMPTS, deliver, sweep_due_deliveries
from app.live.job_queue import DELIVERY
from app.review import service
from app.runs.models import Event as RunEvent
from app.settings import ROOT
from app.tickets.models import MessageKind, Ticket, TicketMessage
from tests.delivery.channels import Broken, Outside, Refusing
from tests.review.factories import DRAFT_TEXT, Desk, make_desk, see


def approved(container: Container, desk: Desk | None = None) -> tuple[Desk, UUID]:
    """Approve the draft of a ticket; returns the desk and the id of the delivery."""
    desk = desk or make_desk(container)
    seen = see(container, desk.ticket_id)
    with container.transaction() as session:
        service.approve(
            session,
            ticket_id=desk.ticket_id,
            staff_id=desk.staff_id,
            text=DRAFT_TEXT,
            seen=seen,
            key=f"form-{seen.run_id}",
        )
    with container.transaction() as session:
        newest = select(Delivery.id).where(Delivery.ticket_id == desk.ticket_id).order_by(Delivery.id.desc()).limit(1)
        return desk, session.scalars(newest).one()


def held_again(container: Container, desk: Desk, first: UUID) -> UUID:
    """Put a second reply behind the first one, as an undo that came too late and a new approval would."""
    with container.transaction() as session:
        session.execute(update(Delivery).where(Delivery.id == first).values(state="failed"))
        service.start_manual(session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, plan=container.run_plan())
    _, second = approved(container, desk)
    with container.transaction() as session:
        session.execute(update(Delivery).where(Delivery.id == first).values(state="held"))
    return second


def send(container: Container, delivery_id: UUID, channels: Sequence[Channel] = CHANNELS) -> None:
    deliver(container.transaction, delivery_id, channels)


def state(container: Container, delivery_id: UUID) -> str:
    with container.transaction() as session:
        return session.get_one(Delivery, delivery_id).state


def replies(container: Container) -> list[TicketMessage]:
    with container.transaction() as session:
        return list(session.scalars(select(TicketMessage).where(TicketMessage.kind == MessageKind.REPLY)))


def ticket_of(container: Container, desk: Desk) -> Ticket:
    with container.transaction() as session:
        return session.get_one(Ticket, desk.ticket_id)


def last_event(container: Container, desk: Desk) -> RunEvent:
    with container.transaction() as session:
        found = select(RunEvent).where(RunEvent.thread_id == desk.thread_id).order_by(RunEvent.seq.desc()).limit(1)
        return session.scalars(found).one()


def expire_lease(container: Container, delivery_id: UUID) -> None:
    with container.transaction() as session:
        past = func.now() - text("interval '1 second'")
        session.execute(update(Delivery).where(Delivery.id == delivery_id).values(lease_until=past))


def sweep(container: Container) -> list[str]:
    """Run the sweep on an empty queue and return what it starts."""
    queue = Queue(DELIVERY, connection=container.redis)
    queue.empty()
    with container.transaction() as session:
        sweep_due_deliveries(session)
    return [job.args[0] for job in queue.jobs]


def test_the_reply_becomes_a_message_and_resolves_the_ticket(container: Container) -> None:
    desk, delivery_id = approved(container)
    with container.transaction() as session:
        assert is_leaving(session, desk.ticket_id)
    send(container, delivery_id)
    message = replies(container)[0]
    assert (message.body, message.number, message.staff_id) == (DRAFT_TEXT, 2, desk.staff_id)
    ticket = ticket_of(container, desk)
    assert (ticket.status, ticket.last_reply_id, ticket.version) == ("resolved", message.id, 2)
    assert ticket.resolved_at is not None
    assert ticket.moved_by == desk.staff_id
    event = last_event(container, desk)
    assert (event.type, event.run_id, event.payload["message"]) == ("reply_sent", desk.run_id, str(message.id))
    with container.transaction() as session:
        row = session.scalars(select(Delivery).where(Delivery.ticket_id == desk.ticket_id)).one()
        assert (row.state, row.error) == ("sent", None)
        assert row.sent_at is not None
        assert not is_leaving(session, desk.ticket_id)


def test_an_escalation_ends_with_the_reply(container: Container) -> None:
    desk = make_desk(container)
    with container.transaction() as session:
        service.escalate(
            session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason="需要法务确认"
        )
    _, delivery_id = approved(container, desk)
    send(container, delivery_id)
    assert ticket_of(container, desk).escalated_at is None


def test_a_job_that_comes_twice_sends_once(container: Container) -> None:
    _, delivery_id = approved(container)
    outside = Outside()
    send(container, delivery_id, [outside])
    send(container, delivery_id, [outside])
    assert outside.left == [delivery_id]
    assert len(replies(container)) == 1


def test_jobs_at_the_same_time_send_once(container: Container) -> None:
    _, delivery_id = approved(container)
    outside = Outside()
    start = Barrier(6)

    def job() -> None:
        start.wait(timeout=10)
        send(container, delivery_id, [outside])

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(job) for _ in range(6)]:
            future.result()
    assert outside.left == [delivery_id]
    assert len(replies(container)) == 1


@pytest.mark.parametrize(("channel", "after"), [(Refusing(), "failed"), (Broken(), "unknown")])
def test_what_did_not_surely_leave_reopens_the_ticket(container: Container, channel: Channel, after: str) -> None:
    desk, delivery_id = approved(container)
    send(container, delivery_id, [channel])
    assert state(container, delivery_id) == after
    assert ticket_of(container, desk).status == "pending"
    assert replies(container) == []
    event = last_event(container, desk)
    assert (event.type, event.payload["state"]) == ("reply_failed", after)
    send(container, delivery_id, [Outside()])
    assert state(container, delivery_id) == after
    with container.transaction() as session:
        assert service.regenerate(
            session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, hint="", plan=container.run_plan()
        )


def test_a_ticket_channel_that_nobody_serves_fails(container: Container) -> None:
    _, delivery_id = approved(container)
    send(container, delivery_id, [])
    assert state(container, delivery_id) == "failed"


@contextmanager
def stuck_sender(container: Container, delivery_id: UUID) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that hangs between sending and sent."""
    settings = container.settings
    environment = {"DATABASE_URL": settings.database_url, "REDIS_URL": settings.redis_url, "DEMO": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.delivery.stuck_sender", str(delivery_id)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"sending {delivery_id}\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_sender_that_is_killed_while_sending(container: Container) -> None:
    desk, delivery_id = approved(container)
    with stuck_sender(container, delivery_id) as process:
        process.kill()
        process.wait(timeout=10)
    assert state(container, delivery_id) == "sending"
    send(container, delivery_id)
    assert (replies(container), sweep(container)) == ([], [])  # the lease still holds
    expire_lease(container, delivery_id)
    assert sweep(container) == [str(delivery_id)]
    send(container, delivery_id)
    send(container, delivery_id)
    assert len(replies(container)) == 1
    assert ticket_of(container, desk).status == "resolved"


def test_a_killed_sender_of_an_outside_channel_is_never_repeated(container: Container) -> None:
    desk, delivery_id = approved(container)
    with stuck_sender(container, delivery_id) as process:
        process.kill()
        process.wait(timeout=10)
    expire_lease(container, delivery_id)
    outside = Outside()
    send(container, delivery_id, [outside])
    assert outside.left == []
    assert state(container, delivery_id) == "unknown"
    assert ticket_of(container, desk).status == "pending"
    assert sweep(container) == []


def test_a_sender_that_wakes_up_too_late_changes_nothing(container: Container) -> None:
    _, delivery_id = approved(container)
    asleep, wake = Event(), Event()

    class Slow(Outside):
        def send(self, delivery_id: UUID, payload: Payload) -> None:
            asleep.set()
            assert wake.wait(timeout=20)

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(send, container, delivery_id, [Slow()])
        assert asleep.wait(timeout=10)
        expire_lease(container, delivery_id)
        send(container, delivery_id)
        wake.set()
        late.result(timeout=10)
    assert len(replies(container)) == 1
    assert state(container, delivery_id) == "sent"


def test_a_sender_that_wakes_up_while_another_sends_leaves_the_end_to_it(container: Container) -> None:
    """The one that was taken for dead is refused by the attempt alone: the reply is still being sent."""
    desk, delivery_id = approved(container)

    class Hanging(Outside):
        repeatable: ClassVar[bool] = True

        def __init__(self) -> None:
            super().__init__()
            self.begun, self.go_on = Event(), Event()

        def send(self, delivery_id: UUID, payload: Payload) -> None:
            self.begun.set()
            assert self.go_on.wait(timeout=20)
            super().send(delivery_id, payload)

    class Refused(Hanging):
        def send(self, delivery_id: UUID, payload: Payload) -> None:
            super().send(delivery_id, payload)
            raise NotSent("The mailbox is full.")

    dead, alive = Refused(), Hanging()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(send, container, delivery_id, [dead])
        assert dead.begun.wait(timeout=10)
        expire_lease(container, delivery_id)
        second = pool.submit(send, container, delivery_id, [alive])
        assert alive.begun.wait(timeout=10)
        dead.go_on.set()
        first.result(timeout=10)
        assert state(container, delivery_id) == "sending"
        assert last_event(container, desk).type != "reply_failed"
        alive.go_on.set()
        second.result(timeout=10)
    assert state(container, delivery_id) == "sent"
    assert ticket_of(container, desk).status == "resolved"
    assert len(replies(container)) == 1


def test_nobody_knows_of_a_reply_whose_senders_all_died(container: Container) -> None:
    desk, delivery_id = approved(container)
    with container.transaction() as session:
        values = {"state": "sending", "attempts": MOST_ATTEMPTS}
        session.execute(update(Delivery).where(Delivery.id == delivery_id).values(**values))
    expire_lease(container, delivery_id)
    send(container, delivery_id)
    assert state(container, delivery_id) == "unknown"
    assert ticket_of(container, desk).status == "pending"
    assert sweep(container) == []


def test_replies_of_a_ticket_leave_in_order(container: Container) -> None:
    desk, first = approved(container)
    second = held_again(container, desk, first)
    send(container, second)
    assert state(container, second) == "held"
    queue = Queue(DELIVERY, connection=container.redis)
    queue.empty()
    send(container, first)
    assert [job.args[0] for job in queue.jobs] == [str(second)]
    send(container, second)
    assert [message.number for message in replies(container)] == [2, 3]
    assert state(container, second) == "sent"


def test_a_reply_is_not_sent_before_its_time(container: Container) -> None:
    _, delivery_id = approved(container)
    with container.transaction() as session:
        later = func.now() + text("interval '1 hour'")
        session.execute(update(Delivery).values(not_before=later))
    send(container, delivery_id)
    assert state(container, delivery_id) == "held"
    assert sweep(container) == []


def test_the_sweep_starts_what_a_lost_job_left(container: Container) -> None:
    desk, first = approved(container)
    assert sweep(container) == []  # its own job may still be under way
    second = held_again(container, desk, first)
    with container.transaction() as session:
        session.execute(update(Delivery).values(not_before=func.now() - text("interval '1 minute'")))
    assert sweep(container) == [str(first)]
    send(container, first)
    assert sweep(container) == [str(second)]
    send(container, second)
    assert sweep(container) == []


def test_the_job_sends_the_reply(container: Container) -> None:
    desk, delivery_id = approved(container)
    settings = container.settings
    environment = {"DATABASE_URL": settings.database_url, "REDIS_URL": settings.redis_url, "DEMO": "1"}
    call = f"from jobs.delivery import deliver_reply; deliver_reply('{delivery_id}')"
    done = subprocess.run([sys.executable, "-c", call], cwd=ROOT, env=environment, check=False, timeout=60)
    assert done.returncode == 0
    assert ticket_of(container, desk).status == "resolved"
