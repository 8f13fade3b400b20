"""What must be told to others once a transaction has been committed.

Services only note it on their session; the composition root sends it after the commit. A signal may be lost: the
sweeps find what it would have started, for PostgreSQL is the authority.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

_KEY = "signals"


class JobName(StrEnum):
    """Jobs by the dotted path of their function; the queue of each is in `app.live.job_queue`."""

    EXECUTE_RUN = "jobs.runs.execute_run"
    INGEST_DOCUMENT = "jobs.knowledge.ingest_document"
    DELIVER_REPLY = "jobs.delivery.deliver_reply"


@dataclass(frozen=True, slots=True)
class Job:
    """A job to start: its name, and the id of the row that it works on. An urgent one goes ahead of others like it."""

    name: JobName
    key: UUID
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class EventFact:
    """One committed event of a thread, as streams carry it; `payload` holds ids and small facts only."""

    thread_id: UUID
    ticket_id: UUID
    seq: int
    type: str
    run_id: UUID | None
    payload: dict[str, Any]


@dataclass(slots=True)
class Signals:
    """What one transaction has to tell."""

    events: list[EventFact] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    stopped_runs: list[UUID] = field(default_factory=list)
    changed_docs: list[UUID] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.events or self.jobs or self.stopped_runs or self.changed_docs)


def signals(session: Session) -> Signals:
    """Return the signals of the session's transaction, to add to."""
    noted: Signals = session.info.setdefault(_KEY, Signals())
    return noted


def take_signals(session: Session) -> Signals:
    """Return the signals noted so far and start afresh."""
    noted: Signals = session.info.pop(_KEY, Signals())
    return noted
