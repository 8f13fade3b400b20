"""A run with all that it left, as values for a page. Stored JSON is parsed here, once; a shape that can't be read shows
as nothing rather than as an error, so that old runs stay readable."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError

from app.agent.values import Citation, Classification, Draft, SearchResult
from app.delivery.models import Delivery, DeliveryState
from app.review.contract import StoredDraft
from app.review.diff import Segment
from app.review.passages import Stretch, stretches
from app.review.reply import SentReply
from app.runs.fate import SET_ASIDE_CODE
from app.runs.models import ACTIVE, Artifact, RunStatus, Step
from app.tickets.models import TicketStatus

M = TypeVar("M", bound=BaseModel)
_CLAIM = re.compile(r"\d|[一二三四五六七八九十百千万两]+(?:元|天|日|小时|分钟|个工作日|折|次)|https?://")
"""What makes a sentence a claim that needs a source: figures, amounts, times, links."""


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
        if self.error_code in (RunStatus.CANCELLED, RunStatus.SUPERSEDED, RunStatus.RETRYING):
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

    id: UUID
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
class MoveView:
    """Where a person, or a source by its token, moved the ticket to; `who` is their name."""

    to: TicketStatus
    who: str | None
    at: datetime
    kind: Literal["move"] = "move"


@dataclass(frozen=True, slots=True)
class RunView:
    """One run with all that it left.

    `started_by` and `moved_by` are names. `ended_with` is the move of the ticket that stopped it. `error_detail` fills
    the places of `error_message`; with `retries_itself` it has failed and is tried once more soon.
    """

    id: UUID
    status: str
    origin: str
    planner: str
    hint: str | None
    model: str | None
    tokens_in: int
    tokens_out: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    started_by: str | None
    moved_at: datetime | None
    moved_by_id: UUID | None
    moved_by: str | None
    ended_with: MoveView | None
    error_code: str | None
    error_message: str | None
    error_detail: Mapping[str, Any] | None
    retries_itself: bool
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
    def is_set_aside(self) -> bool:
        """Whether no worker is to take it up again: a person has to."""
        return self.error_code == SET_ASIDE_CODE

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

    def number_of(self, chunk_id: UUID) -> int | None:
        """Return the number under which the draft cites a passage; None when it does not."""
        sources = self.draft.sources if self.draft else ()
        return next((source.number for source in sources if source.citation.chunk_id == chunk_id), None)

    @property
    def told_at(self) -> datetime:
        """When that came about which is to be said of the run: its draft, or the end of a run that has none or was
        set aside. Sending does not move it."""
        if self.draft and self.status not in (RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.SUPERSEDED):
            return self.draft.created_at
        return self.moved_at or self.created_at

    @property
    def worked(self) -> timedelta | None:
        """How long its steps took together; None before the first has ended."""
        done = [step.duration for step in self.steps if step.duration is not None]
        return sum(done, timedelta()) if done else None


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
        id=artifact.id,
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


def _parse(model: type[M], value: object) -> M | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
