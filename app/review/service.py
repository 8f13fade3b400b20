"""What a person decides on a ticket: approve, redraft, escalate, stop, write it themselves.

Every command locks the thread first, moves runs by `lifecycle` only, and leaves an event and an audit entry.
"""

from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.delivery.payload import Payload
from app.delivery.queries import is_leaving, leaving_run
from app.delivery.service import hold_reply
from app.errors import InvalidInput, NotFound
from app.review.contract import Seen, check_unchanged, seen_now, sources_in_use, stored_draft
from app.review.models import ApprovalKey
from app.review.reply import NOTE_MAX, REPLY_MAX, SentReply, check_rules, keep_reply, reply_text
from app.runs.admin_queries import one_run
from app.runs.events import NewEvent, lock_thread
from app.runs.lifecycle import RunMoved, RunPlan, active_run, create_run, latest_run, move_run, sources
from app.runs.models import Artifact, EventType, Run, RunOrigin, RunStatus
from app.staff import audit
from app.tickets.composer import ComposerDraft
from app.tickets.lifecycle import TicketMoved
from app.tickets.models import DONE, Customer, Thread, Ticket
from app.tickets.text import has_controls, normal_form

KEY_MAX = 200


@dataclass(frozen=True, slots=True)
class Approved:
    """A reply that will leave. `edited` says that the person changed the draft."""

    artifact_id: UUID
    edited: bool


@dataclass(frozen=True, slots=True)
class SeenRun:
    """How an operator saw a run: as long as status and fence are these, nobody has moved it."""

    id: UUID
    status: str
    fence: int


def approve(session: Session, *, ticket_id: UUID, staff_id: UUID, text: str, seen: Seen, key: str) -> Approved:
    """Approve `text` as the reply: it is kept, the run completes, and the outbox holds it; once a `key`.

    Raises InvalidInput, TextBlocked, SeenIsStale, RunMoved (who was first), NotFound; nothing is changed then.
    """
    text = reply_text(text)
    if not key or len(key) > KEY_MAX or has_controls(key, lines=False):
        raise InvalidInput("The form is not complete. Reload the page and try again.", field="key")
    thread = lock_thread(session, ticket_id)
    earlier = _approved_before(session, key=key, staff_id=staff_id, run_id=seen.run_id, text=text)
    if earlier is not None:
        return earlier
    run = _run_that_may_end(session, thread, seen.run_id)
    ticket = session.get_one(Ticket, ticket_id, populate_existing=True)
    stored = stored_draft(session, run.id)
    check_unchanged(seen, seen_now(ticket, run, stored, sources_in_use(session, stored)))
    check_rules(session, text)
    artifact = keep_reply(session, run_id=run.id, staff_id=staff_id, text=text, stored=stored)
    edited = stored is not None and stored.draft.text != text
    customer = session.get_one(Customer, ticket.customer_id)
    payload = Payload(text=text, customer_id=customer.id, recipient=customer.external_id)
    hold_reply(session, artifact_id=artifact.id, ticket_id=ticket_id, channel=ticket.channel, payload=payload)
    approved = {"artifact": str(artifact.id), "by": str(staff_id), "edited": edited}
    events = [NewEvent(EventType.REPLY_APPROVED, run.id, approved), NewEvent(EventType.RUN_COMPLETED, run.id)]
    move_run(session, thread, run.id, RunStatus.COMPLETED, events, by=staff_id)
    _take_key(session, key=key, staff_id=staff_id, run_id=run.id, artifact_id=artifact.id)
    _audit(session, "reply_approved", staff_id, run, artifact=str(artifact.id), edited=edited)
    _forget_composer(session, ticket_id, staff_id)
    return Approved(artifact.id, edited)


def regenerate(
    session: Session,
    *,
    ticket_id: UUID,
    staff_id: UUID | None,
    hint: str,
    plan: RunPlan,
    run_id: UUID | None = None,
    command: str | None = None,
) -> UUID:
    """Start a new run that points back to the last one, and return its id; an active one is superseded.

    The same command retries a failed or cancelled run. `hint` may be empty. `run_id` is the run that the person saw:
    a newer one is left alone. The operator of the server does it by a `command` (the name of it), and is no member of
    staff. Raises InvalidInput, RunMoved, TicketMoved, NotFound.
    """
    wish = reply_text(hint, field="hint", most=NOTE_MAX) if hint.strip() else None
    thread = lock_thread(session, ticket_id)
    ticket = _open_ticket(session, ticket_id)
    by = {"by": str(staff_id)} if staff_id else {"command": command}
    old = _give_way(session, thread, staff_id, {"reason": "regenerated", **by}, run_id)
    new = replace(plan, hint=wish, retry_from=old.id, started_by=staff_id, origin=RunOrigin.REGENERATE)
    if old.status == RunStatus.FAILED:
        new = replace(new, origin=RunOrigin.RETRY, deaths=old.deaths)
    run = create_run(session, thread, ticket, new)
    _audit(session, "draft_regenerated", staff_id, run, retry_from=str(old.id), hint=wish is not None, command=command)
    return run.id


def retry(session: Session, *, staff_id: UUID, plan: RunPlan, seen: SeenRun) -> UUID:
    """Make a run in the place of one that ended without a draft or is stuck, and return its id.

    One that has moved since the operator saw it, or that a worker has after all, is left alone.
    Raises RunMoved, TicketMoved, NotFound.
    """
    ticket_id = one_run(session, seen.id).ticket_id
    thread = lock_thread(session, ticket_id)
    run = _locked_run(session, thread, seen.id)
    _open_ticket(session, ticket_id)
    if (run.status, run.fence) != (seen.status, seen.fence) or not one_run(session, run.id).may_retry:
        raise _moved(run)
    return regenerate(session, ticket_id=ticket_id, staff_id=staff_id, hint="", plan=plan, run_id=run.id)


def start_manual(
    session: Session, *, ticket_id: UUID, staff_id: UUID, plan: RunPlan, run_id: UUID | None = None
) -> UUID:
    """Let a person write the reply without the model, and return the id of the run for it.

    An active run of the agent is superseded; a manual one that is there is taken. Raises as `regenerate`.
    """
    thread = lock_thread(session, ticket_id)
    ticket = _open_ticket(session, ticket_id)
    active = active_run(session, thread.id)
    if active is not None and active.planner == "manual":
        return active.id
    old = _give_way(session, thread, staff_id, {"reason": "manual", "by": str(staff_id)}, run_id)
    manual = replace(
        plan,
        planner="manual",
        model=None,
        hint=None,
        retry_from=old.id,
        started_by=staff_id,
        origin=RunOrigin.MANUAL,
    )
    run = create_run(session, thread, ticket, manual)
    _audit(session, "manual_started", staff_id, run, retry_from=str(old.id))
    return run.id


def escalate(session: Session, *, ticket_id: UUID, run_id: UUID, staff_id: UUID, reason: str) -> None:
    """Hand a run that waits for review to a person who knows more. Raises InvalidInput, RunMoved, NotFound."""
    why = reply_text(reason, field="reason", most=NOTE_MAX)
    thread = lock_thread(session, ticket_id)
    run = _locked_run(session, thread, run_id)
    if run.status != RunStatus.WAITING_FOR_REVIEW:
        raise _moved(run)
    event = NewEvent(EventType.RUN_ESCALATED, run.id, {"by": str(staff_id)})
    move_run(session, thread, run.id, RunStatus.WAITING_FOR_ESCALATION, [event], by=staff_id)
    ticket = session.get_one(Ticket, ticket_id, populate_existing=True)
    ticket.escalated_at = func.now()
    ticket.escalation_reason = why
    ticket.version += 1
    _audit(session, "run_escalated", staff_id, run)


def cancel_run(
    session: Session, *, ticket_id: UUID, run_id: UUID, staff_id: UUID | None, token: str | None = None
) -> None:
    """Stop a run that has not ended; its finished steps stay. A source cancels by its `token` (the name of it).

    Raises RunMoved, NotFound.
    """
    thread = lock_thread(session, ticket_id)
    by = {"by": str(staff_id)} if staff_id else {"token": token}
    event = NewEvent(EventType.RUN_CANCELLED, run_id, by)
    run = move_run(session, thread, run_id, RunStatus.CANCELLED, [event], by=staff_id)
    _audit(session, "run_cancelled", staff_id, run, token=token)


def save_composer(session: Session, *, ticket_id: UUID, staff_id: UUID, body: str) -> None:
    """Keep what a person is typing, whatever has become of the run meanwhile; an empty text forgets it.

    A save that arrives after the person's own approval was on its way before it, and is dropped.
    Raises InvalidInput, NotFound.
    """
    thread = session.scalar(select(Thread).where(Thread.ticket_id == ticket_id))
    if thread is None:
        raise NotFound("There is no such ticket.")
    if len(body) > REPLY_MAX:
        raise InvalidInput("At most %(most)s characters.", field="text", most=REPLY_MAX)
    if has_controls(normal_form(body), lines=True):
        raise InvalidInput("Control characters are not allowed.", field="text")
    if not body or _approved_by(session, thread.id, staff_id):
        _forget_composer(session, ticket_id, staff_id)
        return
    row = insert(ComposerDraft).values(ticket_id=ticket_id, staff_id=staff_id, body=body)
    saved = {"body": row.excluded.body, "updated_at": func.now()}
    session.execute(row.on_conflict_do_update(index_elements=["ticket_id", "staff_id"], set_=saved))


def _approved_by(session: Session, thread_id: UUID, staff_id: UUID) -> bool:
    run = latest_run(session, thread_id)
    return run is not None and run.status == RunStatus.COMPLETED and run.moved_by == staff_id


def _approved_before(session: Session, *, key: str, staff_id: UUID, run_id: UUID, text: str) -> Approved | None:
    """Return the reply that this very approval made; another text under the same key meets the run's new state."""
    artifact = session.scalar(
        select(Artifact)
        .join(ApprovalKey, ApprovalKey.artifact_id == Artifact.id)
        .where(ApprovalKey.key == key, ApprovalKey.staff_id == staff_id, ApprovalKey.run_id == run_id)
    )
    if artifact is None:
        return None
    reply = SentReply.model_validate(artifact.content)
    return Approved(artifact.id, reply.edited) if reply.text == text else None


def _take_key(session: Session, *, key: str, staff_id: UUID, run_id: UUID, artifact_id: UUID) -> None:
    row = insert(ApprovalKey).values(key=key, staff_id=staff_id, run_id=run_id, artifact_id=artifact_id)
    if session.scalar(row.on_conflict_do_nothing().returning(ApprovalKey.key)) is None:
        raise InvalidInput("The form is out of date. Reload the page and try again.", field="key")


def _locked_run(session: Session, thread: Thread, run_id: UUID) -> Run:
    run = session.get(Run, run_id, with_for_update={"key_share": True}, populate_existing=True)
    if run is None or run.thread_id != thread.id:
        raise NotFound("There is no such run.")
    return run


def _run_that_may_end(session: Session, thread: Thread, run_id: UUID) -> Run:
    run = _locked_run(session, thread, run_id)
    if run.status not in sources(RunStatus.COMPLETED):
        raise _moved(run)
    return run


def _moved(run: Run) -> RunMoved:
    return RunMoved(run.id, run.status, run.moved_by, run.moved_at or run.ended_at)


def _open_ticket(session: Session, ticket_id: UUID) -> Ticket:
    """Return the ticket if something is still to be answered. Raises TicketMoved; RunMoved while a reply is leaving."""
    ticket = session.get_one(Ticket, ticket_id, populate_existing=True)
    if ticket.status in DONE:
        raise TicketMoved(ticket)
    if is_leaving(session, ticket_id):
        raise _moved(leaving_run(session, ticket_id))
    return ticket


def _give_way(
    session: Session, thread: Thread, staff_id: UUID | None, why: dict[str, str | None], seen_run: UUID | None
) -> Run:
    """Return the run that a new one follows, superseded if it was active; its event says `why`.

    Raises RunMoved, NotFound.
    """
    newest = latest_run(session, thread.id)
    if newest is None:
        raise NotFound("There is no such run.")
    if seen_run is not None and seen_run != newest.id:
        raise _moved(_locked_run(session, thread, seen_run))
    if newest.status in sources(RunStatus.SUPERSEDED):
        event = NewEvent(EventType.RUN_SUPERSEDED, newest.id, why)
        return move_run(session, thread, newest.id, RunStatus.SUPERSEDED, [event], by=staff_id)
    return newest


def _forget_composer(session: Session, ticket_id: UUID, staff_id: UUID) -> None:
    session.execute(
        delete(ComposerDraft).where(ComposerDraft.ticket_id == ticket_id, ComposerDraft.staff_id == staff_id)
    )


def _audit(session: Session, action: str, staff_id: UUID | None, run: Run, **detail: str | bool | None) -> None:
    audit.record(session, action, staff_id=staff_id, ticket_id=run.ticket_id, run_id=run.id, **detail)
