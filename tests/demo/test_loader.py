"""The demo is loaded once, goes on where it was cut off, and lets people change it."""

from collections import Counter
from collections.abc import Callable
from uuid import UUID

import pytest
from pydantic import SecretStr
from rq import Queue
from sqlalchemy import func, select

from app.bootstrap import Container, build_container
from app.clock import now
from app.db.base import Base
from app.demo import loader
from app.demo.tickets import read_tickets
from app.errors import Forbidden
from app.knowledge.models import DocState, KnowledgeDoc
from app.knowledge.service import delete_document
from app.live.job_queue import RUNS
from app.live.publisher import FEED, thread_stream
from app.runs.models import Run
from app.staff.models import ApiToken, Role, Staff
from app.staff.sign_in import FailureCount, authenticate
from app.staff.tokens import verify_token
from app.tickets.models import Customer, Thread, Ticket, TicketMessage

DOCUMENTS = len(list(loader.DOCUMENTS.iterdir()))
TICKETS = read_tickets()


class Cut(Exception):
    """The power goes out."""


def count(container: Container, model: type[Base]) -> int:
    with container.sessions() as session:
        return session.scalars(select(func.count()).select_from(model)).one()


def cut_off_after(documents: int) -> loader.Progress:
    def progress(what: str, done: int, of: int) -> None:
        if done >= documents:
            raise Cut

    return progress


def test_load(container: Container) -> None:
    with pytest.raises(Cut):
        loader.load(container, cut_off_after(3))
    assert not loader.is_loaded(container)

    told: list[tuple[str, int, int]] = []
    loader.load(container, lambda *progress: told.append(progress))
    assert loader.is_loaded(container)
    assert told[0][1] >= 3
    assert told[-2:] == [("documents", DOCUMENTS, DOCUMENTS), ("tickets", len(TICKETS), len(TICKETS))]
    check_people(container)
    check_documents(container)
    check_tickets(container)

    models: tuple[type[Base], ...] = (Staff, ApiToken, KnowledgeDoc, Customer, Ticket, TicketMessage, Run)
    before = [count(container, model) for model in models]
    loader.load(container, lambda *_: None)
    assert [count(container, model) for model in models] == before


def check_people(container: Container) -> None:
    roles = {"agent": Role.AGENT, "lead": Role.SUPERVISOR, "admin": Role.ADMIN}
    for username, role in roles.items():
        failures = FailureCount(container.redis, username, "test")
        password = f"{username}-demo"
        person = authenticate(container.transaction, username=username, password=password, failures=failures)
        assert person.role == role
    with container.transaction() as session:
        holder = verify_token(session, "dd_demo_token")
    assert holder is not None
    assert holder.source == "demo"


def check_documents(container: Container) -> None:
    with container.sessions() as session:
        states = Counter(session.scalars(select(KnowledgeDoc.state)))
    assert states == {DocState.ACTIVE: DOCUMENTS}


def check_tickets(container: Container) -> None:
    with container.sessions() as session:
        tickets = session.scalars(select(Ticket).order_by(Ticket.number)).all()
        names = dict(session.execute(select(Customer.external_id, Customer.name)).all())
        runs = dict(session.execute(select(Run.ticket_id, Run.id)).all())
    assert [ticket.subject for ticket in tickets] == [ticket.subject for ticket in TICKETS]
    times = [ticket.last_customer_message_at for ticket in tickets]
    assert times == sorted(times)
    assert now() - loader.SPREAD * 1.1 < times[0] < times[-1] < now()
    assert all(names[ticket.customer_id] == ticket.customer_name for ticket in TICKETS)
    urgent = {
        str(runs[made.id])
        for made, ticket in zip(tickets, TICKETS, strict=True)
        if ticket.expected_priority == "urgent"
    }
    queued = [job.args[0] for job in Queue(RUNS, connection=container.redis).jobs]
    assert len(queued) == len(TICKETS)
    assert set(queued[: len(urgent)]) == urgent


def test_what_people_change_stays_until_a_reset(container: Container) -> None:
    loader.load(container, lambda *_: None)
    with container.transaction() as session:
        doc_id: UUID = session.scalars(select(KnowledgeDoc.id).order_by(KnowledgeDoc.id).limit(1)).one()
        delete_document(session, doc_id=doc_id, staff_id=None)
        thread_id = session.scalars(select(Thread.id).limit(1)).one()
    loader.load(container, lambda *_: None)
    assert loader.is_loaded(container)
    with container.sessions() as session:
        assert session.get_one(KnowledgeDoc, doc_id).state == DocState.ARCHIVED
    assert container.redis.exists(thread_stream(thread_id))

    loader.reset(container, lambda *_: None)
    check_documents(container)
    with container.sessions() as session:
        assert session.scalars(select(func.min(Ticket.number))).one() == 1001
    assert not container.redis.exists(thread_stream(thread_id))
    assert container.redis.exists(FEED)


@pytest.mark.parametrize("command", [loader.load, loader.reset])
def test_never_outside_demo_mode(container: Container, command: Callable[[Container, loader.Progress], None]) -> None:
    loader_settings = container.settings.model_copy(update={"demo": False, "secret_key": SecretStr("real")})
    serious = build_container(loader_settings)
    with serious.transaction() as session:
        session.add(Customer(external_id="C-1", name="陈雨桐"))
    with pytest.raises(Forbidden):
        command(serious, lambda *_: None)
    assert count(serious, Customer) == 1
    assert count(serious, Staff) == 0
    serious.engine.dispose()
    serious.redis.close()
