"""Brings tickets to where a person decides, the way the executor leaves them."""

from dataclasses import dataclass
from uuid import UUID

from app.agent.values import Citation, Draft, Sentence
from app.bootstrap import Container
from app.ids import new_id
from app.knowledge.models import DocState, KnowledgeDoc
from app.review.contract import Seen, seen_now, sources_in_use, stored_draft
from app.runs.artifacts import write_artifact
from app.runs.events import lock_thread
from app.runs.lifecycle import latest_run
from app.runs.models import ArtifactType, RunStatus
from app.tickets.models import Ticket
from tests.factories import make_staff, make_ticket

DRAFT_TEXT = "您好，满减券只能用于自营商品，请换一件自营商品再试。"


@dataclass(frozen=True, slots=True)
class Desk:
    """A ticket before a person: who they are, and what they see."""

    staff_id: UUID
    ticket_id: UUID
    number: int
    thread_id: UUID
    run_id: UUID
    seen: Seen


def make_desk(container: Container, *, status: RunStatus = RunStatus.WAITING_FOR_REVIEW, draft: bool = True) -> Desk:
    """Make a ticket whose run stands in `status`, with a draft unless told otherwise, and a person before it."""
    staff_id = make_staff(container)
    made = make_ticket(container, run_status=status)
    if draft:
        add_draft(container, made.run_id, DRAFT_TEXT)
    return Desk(staff_id, made.ticket_id, made.number, made.thread_id, made.run_id, see(container, made.ticket_id))


def add_draft(container: Container, run_id: UUID, text: str, *, doc_id: UUID | None = None) -> UUID:
    """Write the next draft of a run; it cites a document, one of nowhere unless told otherwise."""
    citation = Citation(
        ref="kb-1",
        chunk_id=new_id(),
        doc_id=doc_id or new_id(),
        doc_version=1,
        doc_title="优惠券使用说明",
        heading="适用范围",
        text="满减券只能用于自营商品。",
        digest="0" * 64,
    )
    sentences = (Sentence(text=text, refs=("kb-1",)),)
    draft = Draft(text=text, sentences=sentences, citations=(citation,), confidence=0.9, origin="extract")
    with container.transaction() as session:
        content = draft.model_dump(mode="json")
        return write_artifact(session, run_id=run_id, kind=ArtifactType.DRAFT, content=content).id


def make_document(container: Container, name: str) -> UUID:
    """Make a document that is in use."""
    doc_id = new_id()
    with container.transaction() as session:
        doc = KnowledgeDoc(
            id=doc_id,
            name=f"{name}.md",
            version=1,
            title=name,
            state=DocState.ACTIVE,
            content=b"x",
            content_hash=name,
        )
        session.add(doc)
    return doc_id


def see(container: Container, ticket_id: UUID) -> Seen:
    """Return what a page rendered now shows."""
    with container.transaction() as session:
        thread = lock_thread(session, ticket_id)
        run = latest_run(session, thread.id)
        assert run is not None
        stored = stored_draft(session, run.id)
        return seen_now(session.get_one(Ticket, ticket_id), run, stored, sources_in_use(session, stored))
