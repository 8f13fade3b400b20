"""All that a ticket page shows, read once: a fixed number of statements, whatever the ticket has been through.

The thread's newest number is read first. What happens while the rest is read has a higher number, so the stream
brings it again: twice is harmless, never is not.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, false, func, select
from sqlalchemy.orm import Session, aliased

from app.delivery.models import Delivery
from app.errors import NotFound
from app.guard.personal_data import mask_name
from app.ids import parse_id
from app.review.contract import seen_now, sources_in_use
from app.review.inbox_state import LiveState, open_states
from app.review.run_view import DraftView, MoveView, ReplyView, RunView, StepView, draft_view, reply_view, step_view
from app.review.ticket_view import ComposerView, CustomerView, MessageView, PastTicketView, TicketPage
from app.runs.models import Artifact, ArtifactType, Event, EventType, Run, Step
from app.staff import queries as staff_queries
from app.tickets.composer import ComposerDraft
from app.tickets.models import Customer, SetBy, Thread, Ticket, TicketMessage, TicketStatus

_DECIDED = ("person", "source")
_WITH_TICKET = "ticket_"
RUNS_SHOWN = 20
PAST_SHOWN = 6
MOVES_SHOWN = 40


def ticket_page(session: Session, number: int, *, staff_id: UUID) -> TicketPage:
    """Return the page of a ticket as `staff_id` sees it. Raises NotFound."""
    thread, ticket, customer, state, follows, followed_by = _head(session, number)
    messages = _messages(session, ticket.id)
    runs = _runs(session, thread.id)
    run_ids = [run.id for run in runs]
    steps = _steps(session, run_ids)
    artifacts = _artifacts(session, run_ids)
    deliveries = _deliveries(session, ticket.id)
    past, past_total = _past(session, customer.id, ticket.id)
    told = _told(session, thread.id)
    names = staff_queries.names(session, _people(ticket, messages, runs, artifacts, told))
    moves, ended = _moves(told, names)
    drafts, replies = _made(artifacts, deliveries, names)
    newest = drafts.get(runs[-1].id) if runs else None
    in_use = sources_in_use(session, newest)
    return TicketPage(
        ticket_id=ticket.id,
        thread_id=thread.id,
        last_seq=thread.last_seq,
        number=ticket.number,
        subject=ticket.subject,
        status=ticket.status,
        state=state,
        moved_by=names.get(ticket.moved_by) if ticket.moved_by else None,
        moved_at=ticket.moved_at,
        follows=follows,
        followed_by=followed_by,
        version=ticket.version,
        channel=ticket.channel,
        priority=ticket.priority,
        priority_by_ai=ticket.priority_set_by == SetBy.AI,
        category=ticket.category,
        category_by_ai=ticket.category_set_by == SetBy.AI,
        confidence=ticket.confidence,
        created_at=ticket.created_at,
        escalated_at=ticket.escalated_at,
        escalation_reason=ticket.escalation_reason,
        reply_crossed_at=ticket.reply_crossed_at,
        last_customer_message_id=ticket.last_customer_message_id,
        last_reply_id=ticket.last_reply_id,
        customer=CustomerView(customer.external_id, mask_name(customer.name)),
        messages=tuple(_message_view(message, names) for message in messages),
        moves=moves,
        runs=tuple(
            _run_view(run, steps[run.id], drafts.get(run.id), replies.get(run.id), ended.get(run.id), names)
            for run in runs
        ),
        past=past,
        past_total=past_total,
        composer=composer_of(session, ticket.id, staff_id),
        seen=seen_now(ticket, runs[-1], newest, in_use) if runs else None,
        gone_sources=_cited(newest) - in_use,
    )


@dataclass(frozen=True, slots=True)
class ThreadOf:
    """A ticket by all of its names."""

    ticket_id: UUID
    number: int
    thread_id: UUID


def thread_of(session: Session, ticket_id: UUID) -> ThreadOf:
    """Return a ticket's number and thread. Raises NotFound."""
    found = select(Ticket.number, Thread.id).join(Thread, Thread.ticket_id == Ticket.id).where(Ticket.id == ticket_id)
    row = session.execute(found).one_or_none()
    if row is None:
        raise NotFound("There is no such ticket.")
    number, thread_id = row
    return ThreadOf(ticket_id, number, thread_id)


def ticket_id_of(session: Session, number: int) -> UUID:
    """Return the id of the ticket that people call by `number`. Raises NotFound."""
    ticket_id = session.scalar(select(Ticket.id).where(_has_number(number)))
    if ticket_id is None:
        raise NotFound("There is no such ticket.")
    return ticket_id


def _has_number(number: int) -> ColumnElement[bool]:
    """Return the condition for a ticket's number; one beyond what PostgreSQL can hold is no ticket's."""
    return Ticket.number == number if number < 2**63 else false()


def _head(session: Session, number: int) -> tuple[Thread, Ticket, Customer, LiveState, int | None, int | None]:
    other = aliased(Ticket)
    follows = select(other.number).where(other.id == Ticket.follow_up_of).scalar_subquery()
    followed_by = select(func.max(other.number)).where(other.follow_up_of == Ticket.id).scalar_subquery()
    state = select(open_states(_has_number(number)).subquery().c.state).scalar_subquery()
    row = session.execute(
        select(Thread, Ticket, Customer, state, follows, followed_by)
        .join(Ticket, Ticket.id == Thread.ticket_id)
        .join(Customer, Customer.id == Ticket.customer_id)
        .where(_has_number(number))
    ).one_or_none()
    if row is None:
        raise NotFound("There is no such ticket.")
    thread, ticket, customer, state_now, before, after = row
    return thread, ticket, customer, LiveState(state_now), before, after


def _messages(session: Session, ticket_id: UUID) -> Sequence[TicketMessage]:
    return session.scalars(
        select(TicketMessage).where(TicketMessage.ticket_id == ticket_id).order_by(TicketMessage.number)
    ).all()


def _runs(session: Session, thread_id: UUID) -> Sequence[Run]:
    """Return the newest runs of a thread, oldest of them first."""
    newest = session.scalars(select(Run).where(Run.thread_id == thread_id).order_by(Run.id.desc()).limit(RUNS_SHOWN))
    return newest.all()[::-1]


def _steps(session: Session, run_ids: Collection[UUID]) -> Mapping[UUID, list[StepView]]:
    by_run: defaultdict[UUID, list[StepView]] = defaultdict(list)
    for step in session.scalars(select(Step).where(Step.run_id.in_(run_ids)).order_by(Step.run_id, Step.number)):
        by_run[step.run_id].append(step_view(step))
    return by_run


def _artifacts(session: Session, run_ids: Collection[UUID]) -> Sequence[Artifact]:
    """Return drafts and sent replies, older versions first."""
    shown = (ArtifactType.DRAFT, ArtifactType.SENT_REPLY)
    return session.scalars(
        select(Artifact).where(Artifact.run_id.in_(run_ids), Artifact.type.in_(shown)).order_by(Artifact.version)
    ).all()


def _deliveries(session: Session, ticket_id: UUID) -> Mapping[UUID, Delivery]:
    rows = session.scalars(select(Delivery).where(Delivery.ticket_id == ticket_id))
    return {delivery.artifact_id: delivery for delivery in rows}


def _told(session: Session, thread_id: UUID) -> Sequence[Event]:
    """Return the newest events of the ticket being moved and of runs being stopped, oldest of them first."""
    types = (EventType.TICKET_MOVED, EventType.RUN_CANCELLED)
    found = select(Event).where(Event.thread_id == thread_id, Event.type.in_(types))
    return session.scalars(found.order_by(Event.seq.desc()).limit(MOVES_SHOWN)).all()[::-1]


def _past(session: Session, customer_id: UUID, ticket_id: UUID) -> tuple[tuple[PastTicketView, ...], int]:
    """Return the customer's newest other tickets, and how many there are."""
    rows = session.execute(
        select(Ticket, func.count().over())
        .where(Ticket.customer_id == customer_id, Ticket.id != ticket_id)
        .order_by(Ticket.id.desc())
        .limit(PAST_SHOWN)
    ).all()
    past = tuple(PastTicketView(row.number, row.subject, row.status, row.created_at) for row, _ in rows)
    return past, rows[0][1] if rows else 0


def composer_of(session: Session, ticket_id: UUID, staff_id: UUID) -> ComposerView | None:
    """Return what a person has typed on a ticket and not sent."""
    kept = session.get(ComposerDraft, (ticket_id, staff_id))
    return ComposerView(kept.body, kept.updated_at) if kept else None


def _people(
    ticket: Ticket,
    messages: Iterable[TicketMessage],
    runs: Iterable[Run],
    artifacts: Iterable[Artifact],
    told: Iterable[Event],
) -> set[UUID]:
    named = {ticket.moved_by, *(_mover(event) for event in told), *(message.staff_id for message in messages)}
    named |= {staff_id for run in runs for staff_id in (run.started_by, run.moved_by)}
    return {staff_id for staff_id in named | {artifact.staff_id for artifact in artifacts} if staff_id is not None}


def _mover(event: Event) -> UUID | None:
    return parse_id(str(event.payload.get("by", "")))


def _moves(told: Iterable[Event], names: Mapping[UUID, str]) -> tuple[tuple[MoveView, ...], dict[UUID, MoveView]]:
    """Return the moves that a person or a source made, and which runs were stopped by one."""
    moves: list[MoveView] = []
    ended: dict[UUID, MoveView] = {}
    for event in told:
        mover = _mover(event)
        who = names.get(mover) if mover else event.payload.get("token")
        reason = str(event.payload.get("reason", ""))
        if event.type == EventType.TICKET_MOVED and reason in _DECIDED:
            moves.append(MoveView(TicketStatus(event.payload["to"]), who, event.created_at))
        elif event.run_id and reason.startswith(_WITH_TICKET):
            ended[event.run_id] = MoveView(TicketStatus(reason.removeprefix(_WITH_TICKET)), who, event.created_at)
    return tuple(moves), ended


def _made(
    artifacts: Iterable[Artifact], deliveries: Mapping[UUID, Delivery], names: Mapping[UUID, str]
) -> tuple[dict[UUID, DraftView], dict[UUID, ReplyView]]:
    """Return the newest draft and the sent reply of each run."""
    drafts: dict[UUID, DraftView] = {}
    replies: dict[UUID, ReplyView] = {}
    for artifact in artifacts:
        if artifact.type == ArtifactType.DRAFT:
            draft = draft_view(artifact)
            drafts |= {artifact.run_id: draft} if draft else {}
        else:
            by = names.get(artifact.staff_id) if artifact.staff_id else None
            reply = reply_view(artifact, deliveries.get(artifact.id), by)
            replies |= {artifact.run_id: reply} if reply else {}
    return drafts, replies


def _cited(draft: DraftView | None) -> frozenset[UUID]:
    return frozenset(citation.doc_id for citation in draft.draft.citations) if draft else frozenset()


def _message_view(message: TicketMessage, names: Mapping[UUID, str]) -> MessageView:
    author = names.get(message.staff_id) if message.staff_id else None
    return MessageView(
        message.id, message.number, message.kind, message.body, message.created_at, author, message.artifact_id
    )


def _run_view(
    run: Run,
    steps: Iterable[StepView],
    draft: DraftView | None,
    reply: ReplyView | None,
    ended_with: MoveView | None,
    names: Mapping[UUID, str],
) -> RunView:
    return RunView(
        id=run.id,
        status=run.status,
        origin=run.origin,
        planner=run.planner,
        hint=run.hint,
        model=run.model_used or run.model_planned,
        tokens_in=run.tokens_in,
        tokens_out=run.tokens_out,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        started_by=names.get(run.started_by) if run.started_by else None,
        moved_at=run.moved_at,
        moved_by_id=run.moved_by,
        moved_by=names.get(run.moved_by) if run.moved_by else None,
        ended_with=ended_with,
        error_code=run.error_code,
        error_message=run.error_message,
        error_detail=run.error_detail,
        retries_itself=run.retry_at is not None,
        steps=tuple(steps),
        draft=draft,
        reply=reply,
    )
