"""The approval contract: what a person saw when they approved must be what is, else nothing is sent."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from sqlalchemy.orm import Session

from app.agent.values import Draft
from app.errors import Conflict, InvalidInput
from app.guard.lint import LINT_VERSION, Finding
from app.knowledge.queries import active_among
from app.msgids import msgid
from app.runs.artifacts import latest_artifact
from app.runs.models import ArtifactType, Run
from app.tickets.models import Ticket


@dataclass(frozen=True, slots=True)
class Seen:
    """What stood on the page at the time of approval. Draft and reply are None where there was none."""

    run_id: UUID
    draft_id: UUID | None
    draft_digest: str | None
    last_customer_message_id: UUID | None
    last_reply_id: UUID | None
    lint_version: str
    sources_digest: str


class SeenDraft(Protocol):
    """What is compared of a draft, in whichever form it was read."""

    @property
    def id(self) -> UUID:
        """The id of its artifact."""

    @property
    def digest(self) -> str:
        """SHA-256 of its text."""

    @property
    def draft(self) -> Draft:
        """The draft itself, with what it cites."""


@dataclass(frozen=True, slots=True)
class StoredDraft:
    """The newest draft of a run with the id of its artifact."""

    id: UUID
    draft: Draft

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.draft.text.encode()).hexdigest()


class Change(StrEnum):
    """What can move between the look and the approval."""

    DRAFT = "draft"
    CUSTOMER_MESSAGE = "customer_message"
    REPLY = "reply"
    RULES = "rules"
    SOURCES = "sources"


CHANGE_LABELS = {
    Change.DRAFT: msgid("There is a newer draft."),
    Change.CUSTOMER_MESSAGE: msgid("The customer has written again."),
    Change.REPLY: msgid("A colleague has replied meanwhile."),
    Change.RULES: msgid("The rules for replies have changed."),
    Change.SOURCES: msgid("A document that the draft cites has been replaced or deleted."),
}


class SeenIsStale(Conflict):
    """Something moved since the person looked; `changes` says what. Nothing was sent."""

    code = "seen_is_stale"

    def __init__(self, changes: tuple[Change, ...]) -> None:
        super().__init__("Not sent: something has changed since you opened this page.")
        self.changes = changes


class TextBlocked(InvalidInput):
    """The text breaks a rule for replies; `findings` say where and why."""

    code = "text_blocked"

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("Not sent: change the marked places first.", field="text")
        self.findings = findings


def stored_draft(session: Session, run_id: UUID) -> StoredDraft | None:
    """Return the newest draft of a run, if it has one."""
    artifact = latest_artifact(session, run_id, ArtifactType.DRAFT)
    return StoredDraft(artifact.id, Draft.model_validate(artifact.content)) if artifact else None


def sources_in_use(session: Session, draft: SeenDraft | None) -> frozenset[UUID]:
    """Return the documents that a draft cites, those of them that have not been replaced or deleted since."""
    cited = {citation.doc_id for citation in draft.draft.citations} if draft else set()
    return active_among(session, cited) if cited else frozenset()


def seen_now(ticket: Ticket, run: Run, draft: SeenDraft | None, in_use: frozenset[UUID]) -> Seen:
    """Return what a page that is rendered now shows; the form carries it back at the approval.

    `in_use` are the draft's `sources_in_use`. A version of a document has an id of its own.
    """
    return Seen(
        run_id=run.id,
        draft_id=draft.id if draft else None,
        draft_digest=draft.digest if draft else None,
        last_customer_message_id=ticket.last_customer_message_id,
        last_reply_id=ticket.last_reply_id,
        lint_version=LINT_VERSION,
        sources_digest=hashlib.sha256(" ".join(sorted(map(str, in_use))).encode()).hexdigest(),
    )


def check_unchanged(seen: Seen, now: Seen) -> None:
    """Compare what was seen with what is. Raises SeenIsStale."""
    compared = {
        Change.DRAFT: (seen.draft_id, seen.draft_digest) == (now.draft_id, now.draft_digest),
        Change.CUSTOMER_MESSAGE: seen.last_customer_message_id == now.last_customer_message_id,
        Change.REPLY: seen.last_reply_id == now.last_reply_id,
        Change.RULES: seen.lint_version == now.lint_version,
        Change.SOURCES: seen.sources_digest == now.sources_digest,
    }
    changes = tuple(change for change, same in compared.items() if not same)
    if changes:
        raise SeenIsStale(changes)
