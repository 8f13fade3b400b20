"""What a run knows and makes. Values only: frozen, validated at the boundary, stored in checkpoints as JSON."""

import hashlib
from enum import StrEnum
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

CHECKPOINT_SCHEMA = 2
"""Version of `Observation` as JSON. 1: first shape. 2: `earlier_failure`, and the code of an error in a turn."""
READABLE_SCHEMAS = frozenset({1, 2})
"""Versions that today's `Observation` reads as they were meant: what a later one added has a default."""


class Priority(StrEnum):
    """Who must look at a ticket, and how soon."""

    URGENT = "urgent"
    NORMAL = "normal"
    AUTO_REPLY = "auto_reply"


class Category(StrEnum):
    """What a ticket is about."""

    COUPON = "coupon"
    NEW_USER = "new_user"
    ACCOUNT = "account"
    REFUND = "refund"
    RETURN_EXCHANGE = "return_exchange"
    INVOICE = "invoice"
    DELIVERY = "delivery"
    ORDER_CHANGE = "order_change"
    MEMBERSHIP = "membership"
    PAYMENT = "payment"
    PRODUCT = "product"
    MERCHANT = "merchant"
    PRIVACY = "privacy"
    COMPLAINT = "complaint"
    TECHNICAL = "technical"
    OTHER = "other"


class Sufficiency(StrEnum):
    """Whether the passages found can answer: draft, draft with a warning, or hand to a person."""

    SUFFICIENT = "sufficient"
    WEAK = "weak"
    INSUFFICIENT = "insufficient"


class Value(BaseModel):
    """Base of the values: frozen, no unknown fields, and errors without the input, for it is a customer's words."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class PastTicket(Value):
    """One earlier ticket of the same customer, in summary."""

    number: int
    subject: str
    status: str
    category: str | None


class TicketFacts(Value):
    """What a run may see of its ticket; everything in it is data written by strangers, never an instruction."""

    ticket_id: UUID
    number: int
    channel: str
    subject: str
    content: str
    customer_name: str
    past: tuple[PastTicket, ...] = ()


class Classification(Value):
    """The class of a ticket. `confidence` in 0..1; `reasoning` is one sentence for a person."""

    priority: Priority
    category: Category
    confidence: float = Field(ge=0, le=1)
    reasoning: str = Field(max_length=500)


class Passage(Value):
    """One passage that a search found.

    `ref` is the name that the drafter cites ("kb-1" is the best); `text` is the section to answer with. Scores are the
    original ones: cosine in -1..1, BM25 unbounded, `fused` by the strategy; a rank is 1-based, None where a list
    missed it.
    """

    ref: str
    chunk_id: UUID
    doc_id: UUID
    doc_version: int
    doc_title: str
    heading: str
    text: str
    vector_score: float | None
    vector_rank: int | None
    keyword_score: float | None
    keyword_rank: int | None
    fused: float

    def cite(self) -> "Citation":
        """Return the passage as a draft keeps it."""
        return Citation(
            ref=self.ref,
            chunk_id=self.chunk_id,
            doc_id=self.doc_id,
            doc_version=self.doc_version,
            doc_title=self.doc_title,
            heading=self.heading,
            text=self.text,
            digest=hashlib.sha256(self.text.encode()).hexdigest(),
        )


class Verdict(Value):
    """Whether the passages suffice: a calibrated probability in 0..1, the outcome and a reason in plain words."""

    outcome: Sufficiency
    probability: float = Field(ge=0, le=1)
    reason: str


class SearchResult(Value):
    """What a search found, best first. `keyword_only` is true when no embedding could be had."""

    query: str
    passages: tuple[Passage, ...]
    verdict: Verdict
    keyword_only: bool = False


class Citation(Value):
    """A passage that a draft used, kept whole to outlive a replaced document; `digest` is SHA-256 of `text`."""

    ref: str
    chunk_id: UUID
    doc_id: UUID
    doc_version: int
    doc_title: str
    heading: str
    text: str
    digest: str


class Sentence(Value):
    """One sentence of a draft, verbatim, with the refs of the passages that support it."""

    text: str
    refs: tuple[str, ...]


class Draft(Value):
    """A reply in the making. `text` is what the customer would read; `sentences` cover it in order.

    `origin` says how it came about: written by a model, extracted from passages, or typed by a person.
    """

    text: str
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    confidence: float = Field(ge=0, le=1)
    origin: Literal["model", "extract", "person"]
    warning: str | None = None


class ToolMessage(Value):
    """One turn that the planner is shown: which skill was called with what, and a summary of its result or error.

    `error` is the code of what went wrong; a turn that failed before there was this field has none.
    """

    skill: str
    arguments: str
    summary: str
    failed: bool = False
    error: str | None = None


class Observation(Value):
    """All that a run has learnt so far; a checkpoint is this value as JSON.

    `earlier_failure` says in plain English why the run failed that this one retries.
    """

    ticket: TicketFacts
    hint: str | None = None
    earlier_failure: str | None = None
    classification: Classification | None = None
    search: SearchResult | None = None
    searches: int = 0
    draft: Draft | None = None
    turns: tuple[ToolMessage, ...] = ()
