"""People, API tokens and the audit trail."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Identity, Index
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, Key

LOCALES = ("zh", "en")
"""The languages that a person may choose."""
USERNAME_MAX = 80


class Role(StrEnum):
    """What a member of staff may do; each includes the one before."""

    AGENT = "agent"
    SUPERVISOR = "supervisor"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Return whether this role may do all that `other` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


class Staff(Base):
    """A person who signs in. `password_hash` is argon2id."""

    __tablename__ = "staff"

    id: Mapped[Key]
    username: Mapped[str] = mapped_column(unique=True)
    display_name: Mapped[str]
    password_hash: Mapped[str]
    role: Mapped[str]
    locale: Mapped[str | None]
    is_active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[CreatedAt]


class StaffSession(Base):
    """A person signed in with one browser; its cookie names the row, and without the row it opens nothing."""

    __tablename__ = "staff_sessions"
    __table_args__ = (Index("ix_staff_sessions_staff_id", "staff_id"),)

    id: Mapped[Key]
    staff_id: Mapped[UUID] = mapped_column(ForeignKey("staff.id"))
    created_at: Mapped[CreatedAt]


class ApiToken(Base):
    """A bearer token of a source system; only its SHA-256 is kept. `source` names its idempotency key space."""

    __tablename__ = "api_tokens"

    id: Mapped[Key]
    name: Mapped[str]
    source: Mapped[str]
    digest: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[CreatedAt]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class AuditEntry(Base):
    """Who did what. Append-only, kept so by a trigger; `detail` holds ids and small facts only."""

    __tablename__ = "audit_log"
    __table_args__ = (Index("ix_audit_log_ticket_id", "ticket_id"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    at: Mapped[CreatedAt]
    staff_id: Mapped[UUID | None] = mapped_column(ForeignKey("staff.id"))
    action: Mapped[str]
    ticket_id: Mapped[UUID | None]
    run_id: Mapped[UUID | None]
    detail: Mapped[dict[str, Any]] = mapped_column(default=dict)
