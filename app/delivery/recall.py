"""Takes back an approved reply that has not begun to leave; one that has is only told of.

The recall and the sender's claim are compare-and-sets on the same row: exactly one of them wins. The claim holds no
other lock, so that whoever waits for it here, with the thread locked, waits for a moment only.
"""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import exists, select, update
from sqlalchemy.orm import Session

from app.delivery.models import Delivery, DeliveryState
from app.delivery.payload import Payload
from app.runs.events import NewEvent, append_events
from app.runs.models import Artifact, EventType
from app.tickets.composer import hand_back
from app.tickets.models import Thread


@dataclass(frozen=True, slots=True)
class Recalled:
    """How many held replies were taken back, and whether one is leaving all the same."""

    taken_back: int
    one_is_leaving: bool


def recall_replies(session: Session, thread: Thread, *, reason: str, by: UUID | None = None) -> Recalled:
    """Take back the held replies of a locked thread's ticket, each with its event.

    The text goes back into the editor of the person who approved it, unless they have begun another one there.
    """
    taken = session.scalars(
        update(Delivery)
        .where(Delivery.ticket_id == thread.ticket_id, Delivery.state == DeliveryState.HELD)
        .values(state=DeliveryState.RECALLED)
        .returning(Delivery)
        .execution_options(synchronize_session=False, populate_existing=True)
    ).all()
    for delivery in sorted(taken, key=lambda row: row.id):
        _give_back(session, thread, delivery, {"reason": reason} | ({"by": str(by)} if by else {}))
    leaving = exists().where(Delivery.ticket_id == thread.ticket_id, Delivery.state == DeliveryState.SENDING)
    return Recalled(len(taken), session.scalars(select(leaving)).one())


def _give_back(session: Session, thread: Thread, delivery: Delivery, why: dict[str, str]) -> None:
    artifact = session.get_one(Artifact, delivery.artifact_id)
    facts = {"artifact": str(artifact.id), **why}
    append_events(session, thread, [NewEvent(EventType.REPLY_RECALLED, artifact.run_id, facts)])
    if artifact.staff_id is not None:
        text = Payload.model_validate(delivery.payload).text
        hand_back(session, ticket_id=thread.ticket_id, staff_id=artifact.staff_id, body=text)
