"""Periodic work, in a process of its own: `python -m jobs.schedule`. The one table of it is PERIODIC.

Each row calls a service directly, without RQ, so that what PostgreSQL alone can put right is put right while Redis is
away. A row that fails is logged and comes again; running two schedules at a time does no harm.
"""

import logging
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass

from redis import RedisError
from sqlalchemy.exc import OperationalError

from app.bootstrap import Container
from app.clock import monotonic
from app.delivery.service import sweep_due_deliveries
from app.knowledge.service import resume_stuck_documents
from app.llm.embedding import embedder_name
from app.logs import configure_logging
from app.runs.recovery import enqueue_due, enqueue_unclaimed, republish, retry_due, sweep
from jobs.process import container

log = logging.getLogger(__name__)
COMPLAIN_EVERY_S = 30.0


@dataclass(frozen=True, slots=True)
class Periodic:
    """One row: what is done, and how many seconds lie between two starts of it."""

    name: str
    every_s: float
    work: Callable[[Container], object]


def _start_due_deliveries(parts: Container) -> None:
    with parts.transaction() as session:
        sweep_due_deliveries(session)


def _resume_documents(parts: Container) -> None:
    with parts.transaction() as session:
        resume_stuck_documents(session, embedder=embedder_name(parts.settings))


PERIODIC = (
    Periodic("retry runs that timed out", 0.5, lambda parts: retry_due(parts.transaction, parts.run_plan())),
    Periodic("start runs whose wait is over", 0.5, lambda parts: enqueue_due(parts.transaction, parts.queue)),
    Periodic(
        "decide on runs whose worker died",
        2.0,
        lambda parts: sweep(parts.transaction, parts.stale_policy, parts.run_plan()),
    ),
    Periodic("start runs that nobody claimed", 2.0, lambda parts: enqueue_unclaimed(parts.transaction, parts.queue)),
    Periodic("publish events that streams lack", 2.0, lambda parts: republish(parts.transaction, parts.publisher)),
    Periodic("start replies that are due", 2.0, _start_due_deliveries),
    Periodic("go on with documents that nobody works on", 10.0, _resume_documents),
)


def run_schedule(parts: Container, stopping: threading.Event, table: tuple[Periodic, ...] = PERIODIC) -> None:
    """Do what is due until `stopping` is set."""
    due = dict.fromkeys(table, 0.0)
    complained = dict.fromkeys(table, -COMPLAIN_EVERY_S)
    while not stopping.is_set():
        for row in table:
            if monotonic() < due[row] or stopping.is_set():
                continue
            due[row] = monotonic() + row.every_s
            try:
                row.work(parts)
            except (RedisError, OperationalError) as error:
                if monotonic() - complained[row] >= COMPLAIN_EVERY_S:
                    complained[row] = monotonic()
                    log.warning("could not %s: %s", row.name, type(error).__name__)
            except Exception:
                log.exception("could not %s", row.name)
        stopping.wait(max(0.05, min(due.values()) - monotonic()))


def main() -> None:
    """Work until SIGTERM or SIGINT."""
    configure_logging()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    log.info("ready")
    run_schedule(container(), stopping)


if __name__ == "__main__":
    main()
