"""The audit trail: who did what. Entries are only ever added, in the transaction of the deed itself."""

from uuid import UUID

from sqlalchemy.orm import Session

from app.staff.models import AuditEntry


def record(
    session: Session,
    action: str,
    *,
    staff_id: UUID | None,
    ticket_id: UUID | None = None,
    run_id: UUID | None = None,
    **detail: str | int | bool | None,
) -> None:
    """Note a deed; `detail` holds ids and small facts, never what a customer wrote."""
    entry = AuditEntry(staff_id=staff_id, action=action, ticket_id=ticket_id, run_id=run_id, detail=detail)
    session.add(entry)
