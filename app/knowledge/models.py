"""Documents, their chunks, vectors and postings."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import Vector
from sqlalchemy import ForeignKey, Index, LargeBinary, PrimaryKeyConstraint, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, Key


class DocState(StrEnum):
    """How far a document is on its way to being found."""

    UPLOADED = "uploaded"
    PARSED = "parsed"
    CHUNKED = "chunked"
    EMBEDDED = "embedded"
    ACTIVE = "active"
    FAILED = "failed"
    ARCHIVED = "archived"


class KnowledgeDoc(Base):
    """One version of a document. `name` (the file's name) is the same across versions; one version is active.

    Versions are archived, never deleted, so that a sent reply's citation can be traced. `embedder` is the one that all
    chunks have vectors of; `term_count` their length in index terms. `enqueued_at` is when a job was last started,
    `leased_until` when the job at work is taken for dead, `attempts` counts the jobs since the last progress.
    """

    __tablename__ = "knowledge_docs"
    __table_args__ = (
        UniqueConstraint("name", "version"),
        Index("uq_knowledge_docs_active_name", "name", unique=True, postgresql_where=text("state = 'active'")),
    )

    id: Mapped[Key]
    name: Mapped[str]
    version: Mapped[int] = mapped_column(default=1)
    title: Mapped[str]
    state: Mapped[str] = mapped_column(default=DocState.UPLOADED)
    content: Mapped[bytes] = mapped_column(LargeBinary, deferred=True, deferred_raiseload=True)
    content_hash: Mapped[str]
    chunk_count: Mapped[int] = mapped_column(default=0)
    embedded_count: Mapped[int] = mapped_column(default=0)
    term_count: Mapped[int] = mapped_column(default=0)
    embedder: Mapped[str | None]
    attempts: Mapped[int] = mapped_column(default=0)
    enqueued_at: Mapped[CreatedAt]
    leased_until: Mapped[datetime | None]
    error: Mapped[str | None]
    attributes: Mapped[dict[str, Any]] = mapped_column(default=dict)
    uploaded_by: Mapped[UUID | None] = mapped_column(ForeignKey("staff.id"))
    created_at: Mapped[CreatedAt]
    activated_at: Mapped[datetime | None]
    archived_at: Mapped[datetime | None]


class KnowledgeChunk(Base):
    """A piece to find. `text` is the piece, `section` the surrounding text to answer with; `length` in characters.

    `content_hash` is of what is embedded (title, heading, text): equal hashes share one vector.
    """

    __tablename__ = "knowledge_chunks"
    __table_args__ = (UniqueConstraint("doc_id", "ordinal"), Index("ix_knowledge_chunks_content_hash", "content_hash"))

    id: Mapped[Key]
    doc_id: Mapped[UUID] = mapped_column(ForeignKey("knowledge_docs.id", ondelete="CASCADE"))
    ordinal: Mapped[int]
    heading: Mapped[str]
    text: Mapped[str]
    section: Mapped[str]
    content_hash: Mapped[str]
    length: Mapped[int]


class ChunkEmbedding(Base):
    """A chunk's vector by one embedder (`name/version`); vectors of different embedders are never compared."""

    __tablename__ = "chunk_embeddings"

    chunk_id: Mapped[UUID] = mapped_column(ForeignKey("knowledge_chunks.id", ondelete="CASCADE"), primary_key=True)
    embedder: Mapped[str] = mapped_column(primary_key=True)
    embedding: Mapped[Any] = mapped_column(Vector())


class Posting(Base):
    """A term of an active chunk: how often it stands there, and the chunk's length in terms.

    The BM25 weight is computed when searching, so that it is right for the base as it is then, however it has grown.
    """

    __tablename__ = "postings"
    __table_args__ = (
        PrimaryKeyConstraint("term", "chunk_id", postgresql_include=["frequency", "length"]),
        Index("ix_postings_chunk_id", "chunk_id"),
    )

    term: Mapped[str]
    chunk_id: Mapped[UUID] = mapped_column(ForeignKey("knowledge_chunks.id", ondelete="CASCADE"))
    frequency: Mapped[int]
    length: Mapped[int]


class TermStatistic(Base):
    """In how many active chunks a term stands."""

    __tablename__ = "term_statistics"

    term: Mapped[str] = mapped_column(primary_key=True)
    chunks: Mapped[int]
