"""Lets the customer of a ticket write, and looks at what became of it."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.ids import new_id
from app.intake.messages import MessageWindow, ReceivedMessage, receive_message
from app.runs.models import Event, Run, RunStatus
from app.tickets.models import Thread, Ticket, TicketMessage, TicketStatus

WINDOW = MessageWindow(wait_s=30, most_s=120, reopen_days=14)


def write(
    container: Container,
    ticket_id: UUID,
    body: str = "补充一下，订单是昨天下的。",
    *,
    key: str | None = None,
    source: str = "tests",
    window: MessageWindow = WINDOW,
    staff_id: UUID | None = None,
) -> ReceivedMessage:
    with container.transaction() as session:
        return receive_message(
            session,
            source=source,
            key=key or str(new_id()),
            ticket_id=ticket_id,
            body=body,
            plan=container.run_plan(),
            window=window,
            staff_id=staff_id,
        )


def set_status(container: Container, ticket_id: UUID, status: TicketStatus, *, days_ago: float = 0) -> None:
    """Put a ticket into a status, as if it had been moved so long ago."""
    with container.transaction() as session:
        moved = {"status": status, "moved_at": func.now() - timedelta(days=days_ago)}
        session.execute(update(Ticket).where(Ticket.id == ticket_id).values(**moved))


def end_run(container: Container, run_id: UUID, status: RunStatus = RunStatus.CANCELLED) -> None:
    with container.transaction() as session:
        session.execute(update(Run).where(Run.id == run_id).values(status=status))


def ticket_of(container: Container, ticket_id: UUID) -> Ticket:
    with container.transaction() as session:
        return session.get_one(Ticket, ticket_id)


def run_of(container: Container, run_id: UUID | None) -> Run:
    with container.transaction() as session:
        return session.get_one(Run, run_id)


def runs_of(container: Container, ticket_id: UUID) -> list[Run]:
    """Return the runs of a ticket, oldest first."""
    with container.transaction() as session:
        return list(session.scalars(select(Run).where(Run.ticket_id == ticket_id).order_by(Run.id)))


def messages_of(container: Container, ticket_id: UUID) -> list[TicketMessage]:
    with container.transaction() as session:
        found = select(TicketMessage).where(TicketMessage.ticket_id == ticket_id).order_by(TicketMessage.number)
        return list(session.scalars(found))


def events_of(container: Container, ticket_id: UUID) -> list[Event]:
    with container.transaction() as session:
        found = select(Event).join(Thread, Thread.id == Event.thread_id).where(Thread.ticket_id == ticket_id)
        return list(session.scalars(found.order_by(Event.seq)))
