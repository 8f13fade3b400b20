"""Idempotency of what arrives: a source's key stands for one body, and for what that body made."""

from uuid import UUID

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.errors import InvalidInput
from app.intake.models import IntakeKey


class KeyReused(InvalidInput):
    """The source has used this idempotency key for something else."""

    code = "key_reused"

    def __init__(self) -> None:
        super().__init__("This idempotency key was used for something else.", field="idempotency_key")


def take_key(
    session: Session, *, source: str, key: str, digest: str, ticket_id: UUID, message_id: UUID | None = None
) -> bool:
    """Claim the key before anything else is locked or written, and say whether it was free.

    A racing request with the same key waits here for our end. `message_id` is None for a ticket's first message.
    """
    row = insert(IntakeKey).values(source=source, key=key, digest=digest, ticket_id=ticket_id, message_id=message_id)
    return session.scalar(row.on_conflict_do_nothing().returning(IntakeKey.key)) is not None


def known_key(session: Session, *, source: str, key: str, digest: str) -> IntakeKey:
    """Return what a key that is taken stands for. Raises KeyReused when that was another body."""
    known = session.get_one(IntakeKey, (source, key))
    if known.digest != digest:
        raise KeyReused
    return known
