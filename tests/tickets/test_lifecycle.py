"""The ticket's state machine: what the table allows is done and told, everything else writes nothing."""

from itertools import product

import pytest
from sqlalchemy import func, inspect, select, update

from app.bootstrap import Container
from app.runs.events import lock_thread
from app.tickets.lifecycle import MOVES, TicketMoved, move_ticket
from app.tickets.models import DONE, Ticket, TicketStatus
from tests.factories import MadeTicket, make_staff, make_ticket

PAIRS = list(product(TicketStatus, TicketStatus))


@pytest.fixture
def made(container: Container) -> MadeTicket:
    return make_ticket(container)


def columns(container: Container, made: MadeTicket) -> dict[str, object]:
    with container.transaction() as session:
        ticket = session.get_one(Ticket, made.ticket_id)
        return {column.key: getattr(ticket, column.key) for column in inspect(Ticket).column_attrs}


def put(container: Container, made: MadeTicket, status: TicketStatus) -> None:
    with container.transaction() as session:
        values = {
            "status": status,
            "escalated_at": func.now(),
            "escalation_reason": "涉及安全",
            "reply_crossed_at": func.now(),
            "resolved_at": func.now() if status is TicketStatus.RESOLVED else None,
        }
        session.execute(update(Ticket).values(**values))


def move(container: Container, made: MadeTicket, target: TicketStatus, **by: object) -> dict[str, str]:
    with container.transaction() as session:
        lock_thread(session, made.ticket_id)
        ticket = session.get_one(Ticket, made.ticket_id)
        return move_ticket(session, ticket, target, reason="test", **by).facts  # type: ignore[arg-type]


def test_every_status_has_its_moves_and_none_leads_to_itself() -> None:
    assert set(MOVES) == set(TicketStatus)
    assert all(source not in targets for source, targets in MOVES.items())
    assert all(TicketStatus.PENDING in MOVES[source] for source in DONE), "whatever was done can be opened again"
    assert TicketStatus.PROCESSING not in {*MOVES[TicketStatus.RESOLVED], *MOVES[TicketStatus.CLOSED]}


def test_what_the_table_allows_is_done_and_what_it_does_not_writes_nothing(
    container: Container, made: MadeTicket
) -> None:
    staff_id = make_staff(container)
    for source, target in PAIRS:
        put(container, made, source)
        before = columns(container, made)
        if target not in MOVES[source]:
            with pytest.raises(TicketMoved) as refused:
                move(container, made, target, by=staff_id)
            assert refused.value.ticket_status == source
            assert columns(container, made) == before
            continue
        facts = move(container, made, target, by=staff_id)
        assert facts == {"from": source, "to": target, "reason": "test", "by": str(staff_id)}
        after = columns(container, made)
        assert (after["status"], after["moved_by"], after["version"]) == (target, staff_id, before["version"] + 1)
        is_done = target in DONE
        assert [after[name] is None for name in ("escalated_at", "escalation_reason", "reply_crossed_at")] == (
            [is_done] * 3
        )
        if target not in DONE or target is TicketStatus.RESOLVED:
            assert (after["resolved_at"] is not None) == (target is TicketStatus.RESOLVED)


def test_a_move_from_a_state_that_has_passed_is_refused_with_who_and_when(
    container: Container, made: MadeTicket
) -> None:
    staff_id = make_staff(container, "lead")
    with container.transaction() as session:
        lock_thread(session, made.ticket_id)
        stale = session.get_one(Ticket, made.ticket_id)
        with container.transaction() as other:
            values = {"status": TicketStatus.SPAM, "moved_by": staff_id, "moved_at": func.now()}
            other.execute(update(Ticket).values(**values))
        before = columns(container, made)
        with pytest.raises(TicketMoved) as refused:
            move_ticket(session, stale, TicketStatus.RESOLVED, reason="test")
    assert (refused.value.ticket_status, refused.value.by) == ("spam", staff_id)
    assert refused.value.at == before["moved_at"]
    assert columns(container, made) == before


def test_a_move_by_nobody_forgets_who_moved_before(container: Container, made: MadeTicket) -> None:
    move(container, made, TicketStatus.CLOSED, by=make_staff(container))
    assert "by" not in move(container, made, TicketStatus.PENDING)
    with container.transaction() as session:
        assert session.scalars(select(Ticket.moved_by)).one() is None
