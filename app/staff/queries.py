"""Reads of the staff room, for pages and services."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.staff.models import Role, Staff


@dataclass(frozen=True, slots=True)
class Person:
    """A member of staff, without the password."""

    id: UUID
    username: str
    display_name: str
    role: Role
    locale: str | None


def as_person(staff: Staff) -> Person:
    """Return a row as others may see it."""
    return Person(staff.id, staff.username, staff.display_name, Role(staff.role), staff.locale)


def names(session: Session, staff_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the display names of several people by id."""
    rows = session.execute(select(Staff.id, Staff.display_name).where(Staff.id.in_(staff_ids)))
    return {row.id: row.display_name for row in rows}
