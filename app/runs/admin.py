"""What an operator does to a run by hand, beside what people do from its ticket (`app.review.service`)."""

from uuid import UUID

from sqlalchemy.orm import Session

from app.msgids import msgid
from app.runs.events import NewEvent, lock_thread
from app.runs.fate import SET_ASIDE_CODE
from app.runs.lifecycle import give_to_person, move_run
from app.runs.models import EventType, RunStatus
from app.staff import audit
from app.tickets.models import Ticket

TAKEN_OUT = msgid("This run was set aside by hand.")


def take_out(session: Session, *, ticket_id: UUID, run_id: UUID, staff_id: UUID) -> None:
    """Set aside a run that waits for a worker or has one: none goes on with it, and its ticket goes to a person.

    Raises RunMoved, NotFound.
    """
    thread = lock_thread(session, ticket_id)
    event = NewEvent(EventType.RUN_FAILED, run_id, {"code": SET_ASIDE_CODE, "reason": "by_hand", "by": str(staff_id)})
    move_run(
        session,
        thread,
        run_id,
        RunStatus.FAILED,
        [event],
        by=staff_id,
        error_code=SET_ASIDE_CODE,
        error_message=TAKEN_OUT,
    )
    give_to_person(session.get_one(Ticket, ticket_id, populate_existing=True), TAKEN_OUT)
    audit.record(session, "run_set_aside", staff_id=staff_id, ticket_id=ticket_id, run_id=run_id)
