"""The text that a person approves, and how it is kept: a sent_reply artifact with the diff to the draft."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict
from sqlalchemy.orm import Session

from app.agent.values import Citation
from app.errors import InvalidInput
from app.guard.lint import lint
from app.review.contract import StoredDraft, TextBlocked
from app.review.diff import Segment, changed_percent, compare
from app.review.links import known_links
from app.runs.artifacts import write_artifact
from app.runs.models import Artifact, ArtifactType
from app.tickets.text import has_controls, normal_form
from app.visible import is_blank

REPLY_MAX = 10_000
NOTE_MAX = 500


class SentReply(BaseModel):
    """Content of a sent_reply artifact. `diff` leads from the draft to `text` and is empty where there was no draft."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    draft_id: UUID | None
    edited: bool
    diff: tuple[Segment, ...]
    changed_percent: int
    citations: tuple[Citation, ...]
    origin: Literal["model", "extract", "person"]


def reply_text(raw: str, *, field: str = "text", most: int = REPLY_MAX) -> str:
    """Return a person's text in normal form. Raises InvalidInput when it is empty, too long or has controls."""
    text = normal_form(raw)
    if is_blank(text):
        raise InvalidInput("Write something first.", field=field)
    if len(text) > most:
        raise InvalidInput("At most %(most)s characters.", field=field, most=most)
    if has_controls(text, lines=True):
        raise InvalidInput("Control characters are not allowed.", field=field)
    return text


def check_rules(session: Session, text: str) -> None:
    """Refuse a text that may not leave. Raises TextBlocked."""
    findings = lint(text, known_links(session, text))
    if findings:
        raise TextBlocked(findings)


def keep_reply(session: Session, *, run_id: UUID, staff_id: UUID, text: str, stored: StoredDraft | None) -> Artifact:
    """Write the approved text as a new artifact version, with what it came from."""
    diff = compare(stored.draft.text, text) if stored else ()
    reply = SentReply(
        text=text,
        draft_id=stored.id if stored else None,
        edited=stored is not None and stored.draft.text != text,
        diff=diff,
        changed_percent=changed_percent(diff),
        citations=stored.draft.citations if stored else (),
        origin=stored.draft.origin if stored else "person",
    )
    content = reply.model_dump(mode="json")
    return write_artifact(session, run_id=run_id, kind=ArtifactType.SENT_REPLY, content=content, staff_id=staff_id)
