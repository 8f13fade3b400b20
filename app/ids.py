"""Identifiers: version 7 UUIDs, so that keys sort by the time they were made."""

from datetime import datetime
from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return a fresh time-ordered id."""
    return uuid7()


def first_id_at(moment: datetime) -> UUID:
    """Return the id that sorts before all others made in the millisecond of `moment`, and after those made before."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


def parse_id(text: str) -> UUID | None:
    """Return the UUID that `text` spells, or None when it spells none."""
    try:
        return UUID(text)
    except ValueError:
        return None
