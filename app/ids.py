"""Identifiers: version 7 UUIDs, so that keys sort by the time they were made."""

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return a fresh time-ordered id."""
    return uuid7()


def parse_id(text: str) -> UUID | None:
    """Return the UUID that `text` spells, or None when it spells none."""
    try:
        return UUID(text)
    except ValueError:
        return None
