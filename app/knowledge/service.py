"""Commands on documents: add (or replace), delete, retry. Slow work is left to the ingestion job."""

import hashlib
import unicodedata
from datetime import timedelta
from pathlib import PurePath
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from app.db.signals import Job, JobName, signals
from app.ids import new_id
from app.knowledge import parsers
from app.knowledge.errors import (
    DocumentMoved,
    DocumentNotFound,
    DuplicateContent,
    EmptyDocument,
    FileTooLarge,
    UnsupportedFile,
)
from app.knowledge.index import lock_index, remove_from_index
from app.knowledge.models import DocState, KnowledgeDoc
from app.staff import audit

MAX_BYTES = 10 * 2**20
NAME_LIMIT = 200
UNFINISHED = (DocState.UPLOADED, DocState.PARSED, DocState.CHUNKED, DocState.EMBEDDED)
"""States from which the ingestion job goes on."""

ATTEMPTS = 5
"""Jobs that may die on a document, without any progress, before it is given up."""

STUCK_AFTER = timedelta(seconds=60)
"""How long a document may lie with nobody working on it before its job is started again."""


def add_document(
    session: Session, *, name: str, content: bytes, staff_id: UUID | None, max_bytes: int = MAX_BYTES
) -> UUID:
    """Take a file in and return the document's id; the same name is the next version of what it names.

    The version before stays in searches until this one is active. Raises UnsupportedFile, FileTooLarge, NotText,
    EmptyDocument, InvalidInput (front matter) or DuplicateContent. Only the first lines are looked at: what is wrong
    further down fails the ingestion, with the same words.
    """
    name = _clean_name(name)
    if len(content) > max_bytes:
        raise FileTooLarge("This file is too large; at most %(limit)s MB are allowed.", limit=max_bytes // 2**20)
    if not content:
        raise EmptyDocument("This file is empty.")
    title = parsers.title_of(name, content)
    digest = hashlib.sha256(content).hexdigest()
    lock_index(session)
    _refuse_duplicate(session, digest)
    _drop_unfinished(session, name)
    newest = session.scalar(select(func.max(KnowledgeDoc.version)).where(KnowledgeDoc.name == name)) or 0
    doc = KnowledgeDoc(
        id=new_id(),
        name=name,
        version=newest + 1,
        title=title,
        content=content,
        content_hash=digest,
        uploaded_by=staff_id,
    )
    session.add(doc)
    session.flush()
    audit.record(session, "document_added", staff_id=staff_id, document=str(doc.id), name=name, version=doc.version)
    start_ingestion(session, doc.id)
    return doc.id


def delete_document(session: Session, *, doc_id: UUID, staff_id: UUID | None) -> None:
    """Take every version of a document out of searches at once; the rows stay, archived, for replies that cite them.

    Raises DocumentNotFound.
    """
    lock_index(session)
    name = session.scalar(select(KnowledgeDoc.name).where(KnowledgeDoc.id == doc_id, _listed()))
    if name is None:
        raise DocumentNotFound("There is no such document.")
    ids = session.scalars(select(KnowledgeDoc.id).where(KnowledgeDoc.name == name, _listed())).all()
    archive(session, list(ids))
    audit.record(session, "document_deleted", staff_id=staff_id, document=str(doc_id), name=name)


def retry_document(session: Session, *, doc_id: UUID) -> None:
    """Start a failed document's ingestion again, from the beginning; an active one gets its vectors tried again.

    Raises DocumentNotFound or DocumentMoved.
    """
    doc = session.get(KnowledgeDoc, doc_id, with_for_update={"key_share": True})
    if doc is None or doc.state == DocState.ARCHIVED:
        raise DocumentNotFound("There is no such document.")
    if doc.state != DocState.FAILED and (doc.state != DocState.ACTIVE or doc.error is None):
        raise DocumentMoved("This document has not failed; there is nothing to retry.")
    if doc.state == DocState.FAILED:
        doc.state = DocState.UPLOADED
    doc.error = None
    doc.attempts = 0
    doc.leased_until = None
    start_ingestion(session, doc.id)


def unfinished_by(embedder: str) -> ColumnElement[bool]:
    """Return the condition that a document still needs work: it is on its way, or was embedded by another embedder.

    An active document on which embedding has been given up needs a person first.
    """
    foreign = and_(
        KnowledgeDoc.state == DocState.ACTIVE,
        KnowledgeDoc.embedder.is_distinct_from(embedder),
        KnowledgeDoc.attempts <= ATTEMPTS,
    )
    return or_(KnowledgeDoc.state.in_(UNFINISHED), foreign)


def resume_stuck_documents(session: Session, *, embedder: str, limit: int = 100) -> int:
    """Start the jobs of documents that need work and that nobody works on. Return how many.

    For the schedule: the job was lost, its process died, the embedder was away, or another embedder has been set. A
    document is started again once every STUCK_AFTER at most.
    """
    stuck = (
        select(KnowledgeDoc.id)
        .where(
            unfinished_by(embedder),
            KnowledgeDoc.enqueued_at < func.now() - STUCK_AFTER,
            or_(KnowledgeDoc.leased_until.is_(None), KnowledgeDoc.leased_until < func.now()),
        )
        .order_by(KnowledgeDoc.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    ids = session.scalars(stuck).all()
    for doc_id in ids:
        start_ingestion(session, doc_id)
    return len(ids)


def start_ingestion(session: Session, doc_id: UUID) -> None:
    """Have the ingestion job started after the commit."""
    session.execute(update(KnowledgeDoc).where(KnowledgeDoc.id == doc_id).values(enqueued_at=func.now()))
    signals(session).jobs.append(Job(JobName.INGEST_DOCUMENT, doc_id))
    signals(session).changed_docs.append(doc_id)


def archive(session: Session, doc_ids: list[UUID]) -> None:
    """Take versions out of searches and of the list, under the index's lock."""
    remove_from_index(session, doc_ids)
    session.execute(
        update(KnowledgeDoc)
        .where(KnowledgeDoc.id.in_(doc_ids))
        .values(state=DocState.ARCHIVED, archived_at=func.now(), leased_until=None)
    )
    signals(session).changed_docs += doc_ids


def _listed() -> ColumnElement[bool]:
    return KnowledgeDoc.state != DocState.ARCHIVED


def _clean_name(name: str) -> str:
    """Return the file's own name, NFC, without folders. Raises UnsupportedFile where nothing usable is left."""
    base = PurePath(unicodedata.normalize("NFC", name).replace("\\", "/")).name.strip()
    if not base or len(base) > NAME_LIMIT or not base.isprintable():
        raise UnsupportedFile("The file's name is empty, too long or has unprintable characters.")
    return base


def _refuse_duplicate(session: Session, digest: str) -> None:
    twin = session.scalar(
        select(KnowledgeDoc.name).where(
            KnowledgeDoc.content_hash == digest, KnowledgeDoc.state.in_((*UNFINISHED, DocState.ACTIVE))
        )
    )
    if twin is not None:
        raise DuplicateContent("The same content is in the knowledge base already, as %(name)s.", name=twin)


def _drop_unfinished(session: Session, name: str) -> None:
    """A newer upload takes the place of versions that never became active."""
    ids = session.scalars(
        select(KnowledgeDoc.id).where(KnowledgeDoc.name == name, KnowledgeDoc.state.in_((*UNFINISHED, DocState.FAILED)))
    ).all()
    archive(session, list(ids))
