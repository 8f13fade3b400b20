"""What a person says about the class of a ticket; later runs leave that alone."""

from uuid import UUID

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.agent.values import Category, Priority
from app.errors import Conflict
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.models import EventType
from app.staff import audit
from app.tickets.models import SetBy, Ticket


def set_class(
    session: Session,
    *,
    ticket_id: UUID,
    staff_id: UUID,
    seen_version: int,
    priority: Priority | None = None,
    category: Category | None = None,
    confirm: bool = False,
) -> bool:
    """Take over what a person chose, and return whether that changed anything. None leaves a value as it is.

    A value that differs from the ticket's becomes the person's; `confirm` makes those their own that stay the same.
    `seen_version` is the version of the ticket that the person saw. Raises Conflict when it has moved on, NotFound.
    """
    thread = lock_thread(session, ticket_id)
    ticket = session.get_one(Ticket, ticket_id, populate_existing=True)
    chosen: dict[str, str] = {}
    if priority is not None and (confirm or priority != ticket.priority):
        chosen |= {"priority": priority, "priority_set_by": SetBy.PERSON}
    if category is not None and (confirm or category != ticket.category):
        chosen |= {"category": category, "category_set_by": SetBy.PERSON}
    if not chosen:
        return False
    unmoved = update(Ticket).where(Ticket.id == ticket_id, Ticket.version == seen_version)
    moved_on = unmoved.values(version=Ticket.version + 1, **chosen).returning(Ticket.id)
    if session.scalar(moved_on.execution_options(synchronize_session=False)) is None:
        raise Conflict("The ticket has changed since you looked at it. Choose again.")
    facts = {"by": str(staff_id), "priority": chosen.get("priority"), "category": chosen.get("category")}
    append_events(session, thread, [NewEvent(EventType.TICKET_CHANGED, None, facts)])
    audit.record(
        session,
        "ticket_class_set",
        staff_id=staff_id,
        ticket_id=ticket_id,
        priority=chosen.get("priority"),
        category=chosen.get("category"),
    )
    return True
