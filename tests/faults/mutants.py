"""Faults put into the product on purpose, in a forked process only: the harness must turn red at each of them.

A mutant that no longer finds what it changes is an error, not a survivor.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

import app.bootstrap
import app.intake.messages
import app.review.service
import app.review.ticket_class
from app.db.signals import take_signals
from app.runs import events, ledger, statements
from app.tickets.models import Thread

TRANSITIONS = ("START_STEP", "END_STEP", "END_RUN")


def put_in(name: str) -> None:
    """Change this process's copy of the product; nothing for an empty name."""
    if name:
        MUTANTS[name]()


def _rewrite(pattern: str, replacement: str, *names: str) -> None:
    for name in names:
        changed, count = re.subn(pattern, replacement, getattr(statements, name))
        if not count:
            raise LookupError(f"{name} has no {pattern!r} any more")
        for module in (statements, ledger):
            setattr(module, name, changed)


def guard_off() -> None:
    """The status of a run does not matter to what is written."""
    _rewrite(r" AND runs\.status = 'running'(?= AND runs\.fence)", "", *TRANSITIONS)


def guard_last() -> None:
    """Steps, checkpoints, artifacts and events are written whatever the guard says."""
    _rewrite(r"FROM g WHERE threads\.id", "WHERE threads.id", *TRANSITIONS)
    _rewrite(r"FROM g, t, unnest", "FROM t, unnest", *TRANSITIONS)
    _rewrite(r"(?<=\.place, )g\.id", "%(run)s::uuid", *TRANSITIONS)
    _rewrite(r"SELECT g\.id, (%\(step\)s, %\(schema_version\)s, %\(observation\)s::jsonb) FROM g",
             r"SELECT %(run)s::uuid, \1", "END_STEP")  # fmt: skip


def fence_ignored() -> None:
    """Who holds a run does not matter to what is written."""
    _rewrite(r" AND runs\.fence = %\(fence\)s", "", *TRANSITIONS)


def publish_before_commit() -> None:
    """What a transaction has to tell is told before its commit."""

    @contextmanager
    def told_early(sessions: Any, send: Callable[[Any], None]) -> Iterator[Any]:
        with sessions() as session, session.begin():
            yield session
            send(take_signals(session))

    app.bootstrap.transaction = told_early


def lock_order_reversed() -> None:
    """A person's command locks the runs first and the thread after them."""
    lock = events.lock_thread

    def lock_backwards(session: Session, ticket_id: UUID) -> Thread:
        session.execute(text("SELECT id FROM runs WHERE ticket_id = :id FOR NO KEY UPDATE"), {"id": ticket_id})
        session.execute(text("SELECT pg_sleep(0.005)"))
        return lock(session, ticket_id)

    for module in (app.review.service, app.review.ticket_class, app.intake.messages):
        if not hasattr(module, "lock_thread"):
            raise LookupError(f"{module} has no lock_thread any more")
        module.lock_thread = lock_backwards


MUTANTS: dict[str, Callable[[], None]] = {
    made.__name__: made for made in (guard_off, guard_last, fence_ignored, publish_before_commit, lock_order_reversed)
}
