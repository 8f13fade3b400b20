"""Makes rows that tests start from, through the same functions as the product where there is one."""

from dataclasses import dataclass
from functools import cache
from uuid import UUID

from argon2 import PasswordHasher
from sqlalchemy import select, update

from app.bootstrap import Container
from app.ids import new_id
from app.intake.fields import parse_new_ticket
from app.intake.service import receive_ticket
from app.runs.models import Run, RunStatus
from app.staff.models import Role, Staff
from app.tickets.models import Thread

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
    run_status: RunStatus = RunStatus.CREATED,
) -> MadeTicket:
    """Make a ticket with its first message, thread and run; its job is enqueued.

    In another `run_status` than created no worker will take the run, however fast it is.
    """
    new = parse_new_ticket(
        {
            "customer_id": customer,
            "customer_name": customer_name,
            "subject": subject,
            "content": content,
            "channel": channel,
        }
    )
    with container.transaction() as session:
        made = receive_ticket(session, source="tests", key=str(new_id()), new=new, plan=container.run_plan())
        session.execute(update(Run).where(Run.id == made.run_id).values(status=run_status))
        thread_id = session.scalars(select(Thread.id).where(Thread.ticket_id == made.ticket_id)).one()
    return MadeTicket(made.ticket_id, made.number, thread_id, made.run_id)


@cache
def _password_hash() -> str:
    return PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
