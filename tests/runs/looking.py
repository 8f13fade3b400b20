"""What tests read of a run."""

from uuid import UUID

from sqlalchemy import select, text

from app.bootstrap import Container
from app.runs.models import Artifact, Checkpoint, Event, LlmCall, Run, Step
from app.tickets.models import Thread, Ticket


def run_of(container: Container, run_id: UUID) -> Run:
    """The run's row."""
    with container.transaction() as session:
        return session.get_one(Run, run_id)


def ticket_of(container: Container, ticket_id: UUID) -> Ticket:
    """The ticket's row."""
    with container.transaction() as session:
        return session.get_one(Ticket, ticket_id)


def thread_of(container: Container, thread_id: UUID) -> Thread:
    """The thread's row."""
    with container.transaction() as session:
        return session.get_one(Thread, thread_id)


def steps_of(container: Container, run_id: UUID) -> list[Step]:
    """The run's steps in order."""
    with container.transaction() as session:
        return list(session.scalars(select(Step).where(Step.run_id == run_id).order_by(Step.number)))


def checkpoints_of(container: Container, run_id: UUID) -> list[Checkpoint]:
    """The run's checkpoints in order."""
    with container.transaction() as session:
        return list(
            session.scalars(select(Checkpoint).where(Checkpoint.run_id == run_id).order_by(Checkpoint.step_number))
        )


def artifacts_of(container: Container, run_id: UUID) -> list[Artifact]:
    """The run's artifacts as they came."""
    with container.transaction() as session:
        return list(session.scalars(select(Artifact).where(Artifact.run_id == run_id).order_by(Artifact.id)))


def events_of(container: Container, thread_id: UUID) -> list[Event]:
    """The thread's events in order."""
    with container.transaction() as session:
        return list(session.scalars(select(Event).where(Event.thread_id == thread_id).order_by(Event.seq)))


def calls_of(container: Container, run_id: UUID) -> list[LlmCall]:
    """The calls that the run paid for."""
    with container.transaction() as session:
        return list(session.scalars(select(LlmCall).where(LlmCall.run_id == run_id).order_by(LlmCall.id)))


def stream_of(container: Container, thread_id: UUID) -> list[int]:
    """The numbers of the events that the thread's stream has."""
    return [int(entry_id.split(b"-")[0]) for entry_id, _ in container.redis.xrange(f"thread:{thread_id}")]


def waiting_for_a_lock(container: Container) -> int:
    """How many connections wait for a lock of another."""
    with container.engine.connect() as connection:
        return connection.scalar(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
        )
