"""Reads for the knowledge pages, as frozen rows."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Row, Select, func, select
from sqlalchemy.orm import Session

from app.knowledge.errors import DocumentNotFound
from app.knowledge.models import DocState, KnowledgeChunk, KnowledgeDoc

DOCUMENTS_LIMIT = 500


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One line of the document list; `size` in bytes, `error` an English msgid."""

    id: UUID
    name: str
    title: str
    version: int
    state: DocState
    chunk_count: int
    embedded_count: int
    error: str | None
    size: int
    tags: tuple[str, ...]
    created_at: datetime
    activated_at: datetime | None

    @property
    def working(self) -> bool:
        """Whether the document is still on its way to being found."""
        return self.state not in (DocState.ACTIVE, DocState.FAILED, DocState.ARCHIVED)


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One chunk of a document, in reading order; `length` in characters."""

    id: UUID
    ordinal: int
    heading: str
    text: str
    length: int


def documents(session: Session, *, after: UUID | None = None, limit: int = DOCUMENTS_LIMIT) -> list[DocumentRow]:
    """Return the documents that are not archived, newest first; `after` is the id of the last row seen."""
    query = _rows().where(KnowledgeDoc.state != DocState.ARCHIVED).order_by(KnowledgeDoc.id.desc()).limit(limit)
    if after is not None:
        query = query.where(KnowledgeDoc.id < after)
    return [_document(row) for row in session.execute(query)]


def document_row(session: Session, doc_id: UUID) -> DocumentRow:
    """Return one document, also an archived one. Raises DocumentNotFound."""
    row = session.execute(_rows().where(KnowledgeDoc.id == doc_id)).one_or_none()
    if row is None:
        raise DocumentNotFound("There is no such document.")
    return _document(row)


def active_among(session: Session, doc_ids: Collection[UUID]) -> frozenset[UUID]:
    """Return those of the documents that can be found: not replaced, deleted or still on their way."""
    active = KnowledgeDoc.state == DocState.ACTIVE
    return frozenset(session.scalars(select(KnowledgeDoc.id).where(KnowledgeDoc.id.in_(doc_ids), active)))


def chunks_of(session: Session, doc_id: UUID, *, after: int = -1, limit: int = 200) -> list[ChunkRow]:
    """Return a document's chunks in reading order; `after` is the ordinal of the last one seen."""
    columns = (
        KnowledgeChunk.id,
        KnowledgeChunk.ordinal,
        KnowledgeChunk.heading,
        KnowledgeChunk.text,
        KnowledgeChunk.length,
    )
    rows = session.execute(
        select(*columns)
        .where(KnowledgeChunk.doc_id == doc_id, KnowledgeChunk.ordinal > after)
        .order_by(KnowledgeChunk.ordinal)
        .limit(limit)
    )
    return [ChunkRow(*row) for row in rows]


def _rows() -> "Select[*tuple[object, ...]]":
    return select(
        KnowledgeDoc.id,
        KnowledgeDoc.name,
        KnowledgeDoc.title,
        KnowledgeDoc.version,
        KnowledgeDoc.state,
        KnowledgeDoc.chunk_count,
        KnowledgeDoc.embedded_count,
        KnowledgeDoc.error,
        func.octet_length(KnowledgeDoc.content).label("size"),
        KnowledgeDoc.attributes,
        KnowledgeDoc.created_at,
        KnowledgeDoc.activated_at,
    )


def _document(row: "Row[*tuple[object, ...]]") -> DocumentRow:
    values = row._asdict()
    attributes = values.pop("attributes")
    return DocumentRow(
        **values | {"state": DocState(values["state"]), "tags": tuple(attributes.get("tags", ()))},
    )
