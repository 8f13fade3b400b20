"""Two at the same moment: the customer and the person who approves, the customer twice, one key twice."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import func, select

from app.bootstrap import Container
from app.intake.messages import MessageWindow
from app.review import service
from app.review.contract import SeenIsStale
from app.review.ticket_state import SeenTicket, set_ticket_status
from app.runs.lifecycle import RunMoved
from app.runs.models import ACTIVE, Run, RunStatus
from app.tickets.models import Thread, Ticket, TicketMessage, TicketStatus
from tests.factories import make_ticket
from tests.intake.writing import WINDOW, end_run, events_of, messages_of, runs_of, set_status, ticket_of, write
from tests.review.factories import DRAFT_TEXT, Desk, make_desk

ROUNDS = range(4)


def at_once(*calls: Callable[[], object]) -> list[Future[object]]:
    start = Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        start.wait(timeout=10)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [pool.submit(run, call) for call in calls]


def approve(container: Container, desk: Desk) -> None:
    with container.transaction() as session:
        service.approve(
            session,
            ticket_id=desk.ticket_id,
            staff_id=desk.staff_id,
            text=DRAFT_TEXT,
            seen=desk.seen,
            key=f"form-{desk.run_id}",
        )


def close(container: Container, desk: Desk) -> None:
    with container.transaction() as session:
        seen = SeenTicket("pending", desk.seen.last_customer_message_id)
        set_ticket_status(
            session, ticket_id=desk.ticket_id, target=TicketStatus.CLOSED, staff_id=desk.staff_id, seen=seen
        )


def numbers_are_whole(container: Container, desk: Desk) -> bool:
    """Say whether the thread's events are numbered one by one, up to its own number."""
    with container.transaction() as session:
        last = session.get_one(Thread, desk.thread_id).last_seq
    return [event.seq for event in events_of(container, desk.ticket_id)] == list(range(1, last + 1))


@pytest.mark.parametrize("_round", ROUNDS)
def test_a_message_and_an_approval(container: Container, _round: int) -> None:
    desk = make_desk(container)
    wrote, approved = at_once(lambda: write(container, desk.ticket_id), lambda: approve(container, desk))
    assert wrote.exception() is None
    told = [event.type for event in events_of(container, desk.ticket_id)]
    if approved.exception() is None:
        assert told.index("reply_approved") < told.index("message_received") < told.index("reply_recalled")
    else:
        assert isinstance(approved.exception(), RunMoved | SeenIsStale)
        assert "reply_approved" not in told
    old, new = runs_of(container, desk.ticket_id)
    assert (old.status, new.status) == ("completed" if approved.exception() is None else "superseded", "created")
    assert numbers_are_whole(container, desk)


@pytest.mark.parametrize("_round", ROUNDS)
def test_a_message_and_a_close(container: Container, _round: int) -> None:
    desk = make_desk(container)
    wrote, closed = at_once(lambda: write(container, desk.ticket_id), lambda: close(container, desk))
    assert wrote.exception() is None
    assert ticket_of(container, desk.ticket_id).status == "pending", "no message is closed away unread"
    assert runs_of(container, desk.ticket_id)[-1].status == "created"
    if closed.exception() is None:
        assert "run_cancelled" in [event.type for event in events_of(container, desk.ticket_id)]
    assert numbers_are_whole(container, desk)


def test_messages_approvals_and_redrafts_in_a_storm(container: Container) -> None:
    desk = make_desk(container)

    def redraft() -> None:
        with container.transaction() as session:
            service.regenerate(
                session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, hint="", plan=container.run_plan()
            )

    without_wait = MessageWindow(0, 0, 14)
    calls = [
        *(lambda n=n: write(container, desk.ticket_id, f"第{n}句") for n in range(4)),
        *(lambda n=n: write(container, desk.ticket_id, f"又{n}句", window=without_wait) for n in range(2)),
        lambda: approve(container, desk),
        redraft,
        redraft,
        lambda: close(container, desk),
    ]
    failures = [future.exception() for future in at_once(*calls)]
    assert failures[:6] == [None] * 6
    assert all(getattr(failure, "status", 409) in (409, 422) for failure in failures)
    assert [message.number for message in messages_of(container, desk.ticket_id)] == list(range(1, 8))
    with container.transaction() as session:
        active = select(func.count()).where(Run.ticket_id == desk.ticket_id, Run.status.in_(ACTIVE))
        assert session.scalars(active).one() <= 1
    assert numbers_are_whole(container, desk)


def test_one_key_at_the_same_time_is_one_message(container: Container) -> None:
    made = make_ticket(container)
    results = [future.result() for future in at_once(*[lambda: write(container, made.ticket_id, key="key-0001")] * 6)]
    assert sorted(result.created for result in results) == [False] * 5 + [True]  # type: ignore[attr-defined]
    assert len({result.message_id for result in results}) == 1  # type: ignore[attr-defined]
    assert len(messages_of(container, made.ticket_id)) == 2


def test_messages_at_once_on_a_ticket_closed_for_too_long_open_one_other(container: Container) -> None:
    made = make_ticket(container)
    end_run(container, made.run_id, RunStatus.CANCELLED)
    set_status(container, made.ticket_id, TicketStatus.CLOSED, days_ago=WINDOW.reopen_days + 1)
    at_once(*(lambda n=n: write(container, made.ticket_id, f"第{n}句") for n in range(4)))
    with container.transaction() as session:
        assert session.scalars(select(func.count()).select_from(Ticket)).one() == 2
        followed = select(func.count()).where(TicketMessage.ticket_id != made.ticket_id)
        assert session.scalars(followed).one() == 4
