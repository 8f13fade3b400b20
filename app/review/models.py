"""The approvals that were given."""

from uuid import UUID

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt


class ApprovalKey(Base):
    """The client's key of an approval: the same key again gets the same reply, not a second one."""

    __tablename__ = "approval_keys"

    key: Mapped[str] = mapped_column(primary_key=True)
    staff_id: Mapped[UUID] = mapped_column(ForeignKey("staff.id"))
    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id"))
    artifact_id: Mapped[UUID] = mapped_column(ForeignKey("artifacts.id"))
    created_at: Mapped[CreatedAt]
