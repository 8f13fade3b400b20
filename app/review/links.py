"""Which links of a reply are our own: those that stand in a current help document."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.guard.links import find_links
from app.knowledge.models import DocState, KnowledgeChunk, KnowledgeDoc

_PLACES_READ = 200


def known_links(session: Session, text: str) -> frozenset[str]:
    """Return the links of `text` that an active help document holds just so, in the form of `lint`."""
    return frozenset(link for link in {found.written for found in find_links(text)} if _is_ours(session, link))


def _is_ours(session: Session, link: str) -> bool:
    section = KnowledgeChunk.section
    holding = (
        select(section)
        .distinct()
        .join(KnowledgeDoc, KnowledgeDoc.id == KnowledgeChunk.doc_id)
        .where(KnowledgeDoc.state == DocState.ACTIVE, func.lower(section).contains(link, autoescape=True))
        .limit(_PLACES_READ)
    )
    # The database finds a longer link that begins alike, too.
    return any(link in {found.written for found in find_links(text)} for text in session.scalars(holding))
