"""The values that a ticket page is made of. Stored JSON is parsed here, once; a shape that can't be read shows as
nothing rather than as an error, so that old runs stay readable."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError

from app.agent.values import Citation, Classification, Draft, SearchResult
from app.delivery.models import Delivery, DeliveryState
from app.review.contract import StoredDraft
from app.review.diff import Segment
from app.review.passages import Stretch, stretches
from app.review.reply import SentReply
from app.runs.models import ACTIVE, Artifact, RunStatus, Step
from app.tickets.models import TicketStatus

M = TypeVar("M", bound=BaseModel)
_CLAIM = re.compile(r"\d|[一二三四五六七八九十百千万两]+(?:元|天|日|小时|分钟|个工作日|折|次)|https?://")
"""What makes a sentence a claim that needs a source: figures, amounts, times, links."""


class Phase(StrEnum):
    """What the page is about at the moment; each has its own sheet and its own actions."""

    QUEUED = "queued"
    RUNNING = "running"
    REVIEW = "review"
    ESCALATED = "escalated"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SENDING = "sending"
    SENT = "sent"
    NOT_SENT = "not_sent"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class CustomerView:
    """Who writes; the name is masked."""

    external_id: str
    name: str


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message; `author` is the member of staff who wrote it, `artifact_id` the sent reply that it is."""

    id: UUID
    number: int
    kind: str
    body: str
    at: datetime
    author: str | None
    artifact_id: UUID | None


@dataclass(frozen=True, slots=True)
class StepView:
    """One step, with its result in the shape of its skill."""

    number: int
    skill: str
    started_at: datetime
    ended_at: datetime | None
    error_code: str | None
    error_message: str | None
    classification: Classification | None
    search: SearchResult | None

    @property
    def duration(self) -> timedelta | None:
        """How long it took; None while it runs."""
        return self.ended_at - self.started_at if self.ended_at else None

    @property
    def state(self) -> Literal["done", "now", "bad", "stopped"]:
        """How it stands; a step that was ended with its run is stopped, not failed."""
        if self.error_code in (RunStatus.CANCELLED, RunStatus.SUPERSEDED):
            return "stopped"
        if self.error_code:
            return "bad"
        return "done" if self.ended_at else "now"


@dataclass(frozen=True, slots=True)
class SentenceView:
    """A sentence of the draft: the numbers of its sources, and whether it is a claim that has none."""

    text: str
    sources: tuple[int, ...]
    unsupported: bool


@dataclass(frozen=True, slots=True)
class SourceView:
    """A cited passage under its number, with the stretches that the draft leans on marked."""

    number: int
    citation: Citation
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class DraftView:
    """A draft that was made. `digest` is what the approval contract compares."""

    artifact_id: UUID
    digest: str
    version: int
    created_at: datetime
    draft: Draft
    sentences: tuple[SentenceView, ...]
    sources: tuple[SourceView, ...]


@dataclass(frozen=True, slots=True)
class ReplyView:
    """A reply that was approved: what was sent, what was changed, by whom, and how far it has got."""

    artifact_id: UUID
    text: str
    edited: bool
    diff: tuple[Segment, ...]
    changed_percent: int
    citations: tuple[Citation, ...]
    origin: str
    by: str | None
    approved_at: datetime
    state: str
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunView:
    """One run with all that it left."""

    id: UUID
    status: str
    planner: str
    hint: str | None
    model: str | None
    tokens_in: int
    tokens_out: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    moved_at: datetime | None
    moved_by_id: UUID | None
    moved_by: str | None
    error_code: str | None
    error_message: str | None
    steps: tuple[StepView, ...]
    draft: DraftView | None
    reply: ReplyView | None

    @property
    def active(self) -> bool:
        """Whether it can still move."""
        return self.status in ACTIVE

    @property
    def manual(self) -> bool:
        """Whether a person writes it without the model."""
        return self.planner == "manual"

    @property
    def drafting(self) -> bool:
        """Whether the draft is being written right now."""
        return any(step.skill == "draft_reply" and step.state == "now" for step in self.steps)

    @property
    def classification(self) -> Classification | None:
        """The class that the run found, once it has."""
        return next((step.classification for step in reversed(self.steps) if step.classification), None)

    def score_of(self, chunk_id: UUID) -> float | None:
        """Return how near a passage came to the question (cosine), where the run's search compared them."""
        found = next((step.search for step in reversed(self.steps) if step.search), None)
        passages = found.passages if found else ()
        return next((passage.vector_score for passage in passages if passage.chunk_id == chunk_id), None)

    @property
    def worked(self) -> timedelta | None:
        """How long its steps took together; None before the first has ended."""
        done = [step.duration for step in self.steps if step.duration is not None]
        return sum(done, timedelta()) if done else None


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One entry of the timeline: a message, or a run that is not the newest."""

    at: datetime
    message: MessageView | None = None
    run: RunView | None = None


@dataclass(frozen=True, slots=True)
class PastTicketView:
    """An earlier ticket of the same customer."""

    number: int
    subject: str
    status: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ComposerView:
    """What the person was typing, and when it was last saved."""

    body: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class TicketPage:
    """The whole page. `last_seq` is the thread's newest number when it was read; runs are oldest first.

    `past` holds the customer's newest other tickets, of `past_total`.
    """

    ticket_id: UUID
    thread_id: UUID
    last_seq: int
    number: int
    subject: str
    status: str
    channel: str
    priority: str | None
    priority_by_ai: bool
    category: str | None
    category_by_ai: bool
    confidence: float | None
    created_at: datetime
    escalated_at: datetime | None
    escalation_reason: str | None
    last_customer_message_id: UUID | None
    last_reply_id: UUID | None
    customer: CustomerView
    messages: tuple[MessageView, ...]
    runs: tuple[RunView, ...]
    past: tuple[PastTicketView, ...]
    past_total: int
    composer: ComposerView | None

    @property
    def run(self) -> RunView | None:
        """The newest run: what the page is about."""
        return self.runs[-1] if self.runs else None

    @property
    def history(self) -> tuple[HistoryItem, ...]:
        """Messages and earlier runs as they came. The newest run and its reply are left out: the page has a place."""
        shown_below = self.run.reply.artifact_id if self.run and self.run.reply else None
        said = [
            HistoryItem(message.at, message=message)
            for message in self.messages
            if shown_below is None or message.artifact_id != shown_below
        ]
        earlier = [HistoryItem(run.created_at, run=run) for run in self.runs[:-1]]
        return tuple(sorted([*said, *earlier], key=lambda item: item.at))

    @property
    def phase(self) -> Phase:
        """What the page is about at the moment."""
        run = self.run
        if run is None:
            return Phase.IDLE
        if run.status == RunStatus.COMPLETED:
            return _sent_phase(run.reply)
        return _PHASES[RunStatus(run.status)]

    @property
    def open(self) -> bool:
        """Whether something is left to answer."""
        return self.status not in (TicketStatus.RESOLVED, TicketStatus.CLOSED, TicketStatus.SPAM)


_PHASES = {
    RunStatus.CREATED: Phase.QUEUED,
    RunStatus.RETRYING: Phase.QUEUED,
    RunStatus.RUNNING: Phase.RUNNING,
    RunStatus.WAITING_FOR_REVIEW: Phase.REVIEW,
    RunStatus.WAITING_FOR_ESCALATION: Phase.ESCALATED,
    RunStatus.FAILED: Phase.FAILED,
    RunStatus.CANCELLED: Phase.CANCELLED,
    RunStatus.SUPERSEDED: Phase.CANCELLED,
}


def step_view(step: Step) -> StepView:
    """Return a step for the page."""
    done = step.output if step.error_code is None else None
    return StepView(
        number=step.number,
        skill=step.skill,
        started_at=step.started_at,
        ended_at=step.ended_at,
        error_code=step.error_code,
        error_message=step.error_message,
        classification=_parse(Classification, done) if step.skill == "classify_ticket" else None,
        search=_parse(SearchResult, done) if step.skill == "search_knowledge" else None,
    )


def draft_view(artifact: Artifact) -> DraftView | None:
    """Return a draft for the page, or None when it is of a shape that this version does not know."""
    draft = _parse(Draft, artifact.content)
    if draft is None:
        return None
    number_of = {citation.ref: number for number, citation in enumerate(draft.citations, start=1)}
    sentences = tuple(
        SentenceView(
            text=sentence.text,
            sources=tuple(number_of[ref] for ref in sentence.refs if ref in number_of),
            unsupported=not sentence.refs and bool(_CLAIM.search(sentence.text)),
        )
        for sentence in draft.sentences
    )
    return DraftView(
        artifact_id=artifact.id,
        digest=StoredDraft(artifact.id, draft).digest,
        version=artifact.version,
        created_at=artifact.created_at,
        draft=draft,
        sentences=sentences,
        sources=tuple(
            SourceView(number, citation, stretches(citation.text, _citing(draft, citation.ref)))
            for number, citation in enumerate(draft.citations, start=1)
        ),
    )


def _citing(draft: Draft, ref: str) -> list[str]:
    return [sentence.text for sentence in draft.sentences if ref in sentence.refs]


def reply_view(artifact: Artifact, delivery: Delivery | None, by: str | None) -> ReplyView | None:
    """Return a sent reply for the page, or None when it is of a shape that this version does not know."""
    sent = _parse(SentReply, artifact.content)
    if sent is None:
        return None
    return ReplyView(
        artifact_id=artifact.id,
        text=sent.text,
        edited=sent.edited,
        diff=sent.diff,
        changed_percent=sent.changed_percent,
        citations=sent.citations,
        origin=sent.origin,
        by=by,
        approved_at=artifact.created_at,
        state=delivery.state if delivery else DeliveryState.SENT,
        sent_at=delivery.sent_at if delivery else None,
    )


def _sent_phase(reply: ReplyView | None) -> Phase:
    if reply is None or reply.state == DeliveryState.SENT:
        return Phase.SENT
    return Phase.SENDING if reply.state in (DeliveryState.HELD, DeliveryState.SENDING) else Phase.NOT_SENT


def _parse(model: type[M], value: object) -> M | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
