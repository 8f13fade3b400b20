"""Reads for the knowledge pages, as frozen rows."""

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True)
class BaseFigures:
    """How much there is to find."""

    documents: int
    chunks: int


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


def base_figures(session: Session) -> BaseFigures:
    """Return how many documents and chunks are active."""
    row = session.execute(
        select(func.count(), func.coalesce(func.sum(KnowledgeDoc.chunk_count), 0)).where(
            KnowledgeDoc.state == DocState.ACTIVE
        )
    ).one()
    return BaseFigures(row[0], row[1])


def unfinished_documents(session: Session) -> int:
    """Return how many documents are still on their way, for a progress line."""
    states: Sequence[str] = (DocState.UPLOADED, DocState.PARSED, DocState.CHUNKED, DocState.EMBEDDED)
    return session.scalar(select(func.count()).select_from(KnowledgeDoc).where(KnowledgeDoc.state.in_(states))) or 0


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
