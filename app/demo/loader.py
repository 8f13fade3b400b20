"""Loads the demo: people, a token, documents that can be found, and tickets that the workers then answer.

Loading twice changes nothing, and a load that was cut off goes on where it stopped. The tickets come last and all at
once, so that their presence says that the demo is whole, whatever people have done with it since.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from app.agent.values import Priority
from app.bootstrap import Container
from app.clock import monotonic, now
from app.db.signals import signals
from app.demo.tickets import DemoTicket, read_tickets
from app.demo.vectors import demo_vectors
from app.errors import Forbidden, Unavailable
from app.intake.fields import parse_new_ticket
from app.intake.models import IntakeKey
from app.intake.service import receive_ticket
from app.knowledge.ingestion import Ingestion
from app.knowledge.models import KnowledgeDoc
from app.knowledge.service import UNFINISHED, add_document
from app.llm.embedding import make_embedder
from app.staff.models import ApiToken, Role, Staff
from app.staff.service import create_staff
from app.staff.tokens import issue_token
from app.tables import metadata

DOCUMENTS = Path(__file__).with_name("documents")
SOURCE = "demo"
TOKEN = "dd_demo_token"  # noqa: S105 - known to everybody, and made in demo mode only
SPREAD = timedelta(hours=9)
"""How far back the oldest ticket was written."""
PATIENCE_S = 120.0
"""How long the documents may stand still, be it that another process works on them, before loading gives up."""

Progress = Callable[[str, int, int], None]
"""Told what is being loaded, how many are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Account:
    """A person of the demo."""

    username: str
    password: str
    display_name: str
    role: Role


ACCOUNTS = (
    Account("agent", "agent-demo", "周予安", Role.AGENT),
    Account("lead", "lead-demo", "李岚", Role.SUPERVISOR),
    Account("admin", "admin-demo", "孟辰", Role.ADMIN),
)


def load(container: Container, progress: Progress) -> None:
    """Load what of the demo is missing. Raises Forbidden outside demo mode, Unavailable when documents get stuck."""
    _refuse_outside_demo(container)
    with container.transaction() as session:
        _load_people(session)
    _load_documents(container, progress)
    _load_tickets(container, progress)


def is_loaded(container: Container) -> bool:
    """Say whether every demo ticket has been loaded, and with them the rest."""
    with container.sessions() as session:
        found = session.scalars(select(func.count()).select_from(IntakeKey).where(IntakeKey.source == SOURCE)).one()
    return found >= len(read_tickets())


def reset(container: Container, progress: Progress) -> None:
    """Empty every table, forget the streams, and load the demo anew. Raises Forbidden outside demo mode."""
    _refuse_outside_demo(container)
    tables = ", ".join(f'"{table.name}"' for table in metadata.sorted_tables)
    with container.transaction() as session:
        session.execute(text("SET LOCAL lock_timeout = '10s'"))
        session.execute(text(f"TRUNCATE {tables} RESTART IDENTITY"))
    container.publisher.forget_streams()
    load(container, progress)


def _refuse_outside_demo(container: Container) -> None:
    if not container.settings.demo:
        raise Forbidden("The demo is loaded in demo mode only: set DEMO=1 on a database that holds nothing of value.")


def _load_people(session: Session) -> None:
    for account in ACCOUNTS:
        if session.scalar(select(Staff.id).where(Staff.username == account.username)) is None:
            create_staff(
                session,
                username=account.username,
                display_name=account.display_name,
                password=account.password,
                role=account.role,
            )
    if session.scalar(select(ApiToken.id).where(ApiToken.name == SOURCE)) is None:
        issue_token(session, name=SOURCE, source=SOURCE, token=TOKEN)


def _load_documents(container: Container, progress: Progress) -> None:
    """Add the documents that were never there (one that somebody deleted stays away) and wait until all are found."""
    files = sorted(DOCUMENTS.iterdir())
    names = [file.name for file in files]
    with container.transaction() as session:
        known = set(session.scalars(select(KnowledgeDoc.name).where(KnowledgeDoc.name.in_(names))))
        for file in files:
            if file.name not in known:
                add_document(session, name=file.name, content=file.read_bytes(), staff_id=None)
    _ingest(container, names, progress)


def _ingest(container: Container, names: Sequence[str], progress: Progress) -> None:
    embedder = make_embedder(container.settings, threads=2)
    ingestion = Ingestion(container.transaction, embedder, demo_vectors(embedder.name))
    standing, since = None, monotonic()
    while waiting := _unfinished(container, names):
        progress("documents", len(names) - len(waiting), len(names))
        for doc_id, *_ in waiting:
            ingestion.run(doc_id)  # does nothing while a worker has it
            progress("documents", len(names) - len(_unfinished(container, names)), len(names))
        if waiting != standing:
            standing, since = waiting, monotonic()
        elif monotonic() - since > PATIENCE_S:
            raise Unavailable("The demo documents can't be embedded; the log says why. Load again to go on.")
        else:
            time.sleep(0.2)
    progress("documents", len(names), len(names))


def _unfinished(container: Container, names: Sequence[str]) -> list[tuple[UUID, str, int]]:
    """Return id, state and number of vectors of the documents that can't be found yet."""
    with container.sessions() as session:
        rows = session.execute(
            select(KnowledgeDoc.id, KnowledgeDoc.state, KnowledgeDoc.embedded_count)
            .where(KnowledgeDoc.name.in_(names), KnowledgeDoc.state.in_(UNFINISHED))
            .order_by(KnowledgeDoc.id)
        )
        return [(doc_id, state, count) for doc_id, state, count in rows]


def _load_tickets(container: Container, progress: Progress) -> None:
    """Take the tickets in, in the order of their times; the runs of the urgent ones are started first."""
    tickets = read_tickets()
    times = _times(len(tickets))
    urgent: set[UUID] = set()
    with container.transaction() as session:
        for ticket, at in zip(tickets, times, strict=True):
            run_id = _take_in(container, session, ticket, at)
            if ticket.expected_priority is Priority.URGENT:
                urgent.add(run_id)
        signals(session).jobs.sort(key=lambda job: job.key not in urgent)
    progress("tickets", len(tickets), len(tickets))


def _take_in(container: Container, session: Session, ticket: DemoTicket, at: datetime) -> UUID:
    fields = {
        "customer_id": ticket.customer_id,
        "customer_name": ticket.customer_name,
        "channel": ticket.channel,
        "subject": ticket.subject,
        "content": ticket.content,
    }
    key, plan = f"demo-ticket-{ticket.key}", container.run_plan()
    return receive_ticket(session, source=SOURCE, key=key, new=parse_new_ticket(fields), plan=plan, at=at).run_id


def _times(count: int) -> list[datetime]:
    """Return times up to now, oldest first, denser towards the end: the day gets busier."""
    end = now()
    return [end - SPREAD * ((count - index) / count) ** 1.5 for index in range(count)]
