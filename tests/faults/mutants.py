"""Faults put into the product on purpose, in a forked process only: the harness must turn red at each of them.

Each names the invariant that must complain. A mutant that no longer finds what it changes is an error, not a survivor.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

import app.bootstrap
import app.delivery.recall
import app.delivery.service
import app.delivery.settle
import app.intake.messages
import app.review.service
import app.review.ticket_class
import app.runs.recovery
from app.db.signals import take_signals
from app.runs import events, ledger, statements
from app.tickets.models import Thread

TRANSITIONS = ("START_STEP", "END_STEP", "END_RUN")


def put_in(name: str) -> None:
    """Change this process's copy of the product; nothing for an empty name."""
    if name:
        MUTANTS[name].put_in()


def _rewrite(pattern: str, replacement: str, *names: str) -> None:
    for name in names:
        changed, count = re.subn(pattern, replacement, getattr(statements, name))
        if not count:
            raise LookupError(f"{name} has no {pattern!r} any more")
        for module in (statements, ledger):
            setattr(module, name, changed)


def _reword(function: Callable[..., Any], old: str, new: str) -> None:
    """Replace words of a function, wherever the product has it."""
    source = inspect.getsource(function)
    if source.count(old) != 1:
        raise LookupError(f"{function.__qualname__} has {old!r} {source.count(old)} times")
    home = sys.modules[function.__module__]
    exec(source.replace(old, new), vars(home))  # noqa: S102 - the product's own words, in a forked process
    changed = getattr(home, function.__name__)
    for name, module in list(sys.modules.items()):
        if name.startswith(("app.", "jobs.")) and vars(module).get(function.__name__) is function:
            setattr(module, function.__name__, changed)


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


def live_leases_swept() -> None:
    """The sweep takes runs whose worker is alive."""
    _reword(app.runs.recovery.sweep, "Run.lease_until < func.now()", "Run.lease_until.is_not(None)")


def retries_dropped() -> None:
    """A run that is due for its retry is due no more, and that is all."""
    retry = "    _retry(session, thread, ticket, run, plan, RunOrigin.TIMED_OUT)\n"
    _reword(app.runs.recovery._take_retry, retry, "")


def replies_lost() -> None:
    """Whatever the channel says, no reply has left."""
    _reword(app.delivery.service._send, "_Outcome(DeliveryState.SENT)", '_Outcome(DeliveryState.FAILED, "lost")')


def leaving_replies_recalled() -> None:
    """A reply that has begun to leave is taken back too."""
    held = "Delivery.state == DeliveryState.HELD)"
    _reword(
        app.delivery.recall.recall_replies, held, "Delivery.state.in_((DeliveryState.HELD, DeliveryState.SENDING)))"
    )


def crossed_replies_resolve() -> None:
    """A reply resolves its ticket although the customer has written meanwhile."""
    _reword(app.delivery.settle.write_reply, "crossed = is_open and ", "crossed = False and ")


def leaving_replies_ignored() -> None:
    """What is drafted next does not wait for a reply that is leaving."""
    _reword(app.review.service._open_ticket, "if is_leaving(session, ticket_id):", "if False:")


def overtaken_senders_finish() -> None:
    """How a send ended is written down by who began it, although another has taken it over."""
    _reword(app.delivery.service._finish, "            Delivery.attempts == claimed.attempt,\n", "")


def ends_of_replies_untold() -> None:
    """A reply is taken back without a word."""
    event = "    append_events(session, thread, [NewEvent(EventType.REPLY_RECALLED, artifact.run_id, facts)])\n"
    _reword(app.delivery.recall._give_back, event, "")


def people_off_the_record() -> None:
    """What people decide is not audited."""
    entry = "    audit.record(session, action, staff_id=staff_id, ticket_id=run.ticket_id, run_id=run.id, **detail)\n"
    _reword(app.review.service._audit, entry, "    return None\n")


class Mutant(NamedTuple):
    """What puts it in, and the invariant that must complain of it."""

    put_in: Callable[[], None]
    breaks: str


MUTANTS = {
    mutant.put_in.__name__: mutant
    for mutant in (
        Mutant(guard_off, "moves_are_legal"),
        Mutant(guard_last, "events_tell_the_moves"),
        Mutant(fence_ignored, "leases_are_respected"),
        Mutant(publish_before_commit, "streams_repeat_the_events"),
        Mutant(lock_order_reversed, "nobody_deadlocks"),
        Mutant(live_leases_swept, "leases_are_respected"),
        Mutant(retries_dropped, "retries_are_made"),
        Mutant(replies_lost, "replies_end_as_their_channel_did"),
        Mutant(leaving_replies_recalled, "replies_move_by_the_table"),
        Mutant(crossed_replies_resolve, "done_tickets_rest"),
        Mutant(leaving_replies_ignored, "a_message_is_answered_once"),
        Mutant(overtaken_senders_finish, "replies_move_by_the_table"),
        Mutant(ends_of_replies_untold, "ends_of_replies_are_told"),
        Mutant(people_off_the_record, "people_are_on_record"),
    )
}
