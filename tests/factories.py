"""Makes rows that tests start from, through the same functions as the product where there is one."""

from dataclasses import dataclass
from functools import cache
from uuid import UUID

from argon2 import PasswordHasher
from sqlalchemy import select

from app.bootstrap import Container
from app.ids import new_id
from app.runs.lifecycle import create_run
from app.staff.models import Role, Staff
from app.tickets.models import Customer, MessageKind, Thread, Ticket, TicketMessage

PASSWORD = "correct horse 42"


@dataclass(frozen=True, slots=True)
class MadeTicket:
    """What `make_ticket` made."""

    ticket_id: UUID
    number: int
    thread_id: UUID
    run_id: UUID


def make_staff(container: Container, username: str = "agent", role: Role = Role.AGENT) -> UUID:
    """Make a person who can sign in with PASSWORD, or find the one of that name; returns their id."""
    with container.transaction() as session:
        found = session.scalar(select(Staff.id).where(Staff.username == username))
        if found is not None:
            return found
        staff = Staff(id=new_id(), username=username, display_name=username, password_hash=_password_hash(), role=role)
        session.add(staff)
        return staff.id


def make_ticket(
    container: Container,
    *,
    subject: str = "优惠券用不了",
    content: str = "我的满减券在结算页显示不可用，请问是什么原因？",
    customer: str = "C-1001",
    customer_name: str = "陈雨桐",
    channel: str = "web",
) -> MadeTicket:
    """Make a ticket with its first message, thread and run (state created; its job is enqueued)."""
    with container.transaction() as session:
        person = session.scalar(select(Customer).where(Customer.external_id == customer))
        if person is None:
            person = Customer(id=new_id(), external_id=customer, name=customer_name)
            session.add(person)
            session.flush()
        message_id = new_id()
        ticket = Ticket(
            id=new_id(),
            customer_id=person.id,
            channel=channel,
            subject=subject,
            last_customer_message_id=message_id,
        )
        session.add(ticket)
        session.flush()
        thread = Thread(id=new_id(), ticket_id=ticket.id)
        message = TicketMessage(id=message_id, ticket_id=ticket.id, number=1, kind=MessageKind.CUSTOMER, body=content)
        session.add_all([thread, message])
        session.flush()
        run = create_run(session, thread, ticket, container.run_plan())
        return MadeTicket(ticket.id, ticket.number, thread.id, run.id)


@cache
def _password_hash() -> str:
    return PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
