"""Vectors at rest: of chunks in PostgreSQL, and known ones in a file, so that no text is embedded twice."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

import numpy as np
from sqlalchemy import exists, func, select, text
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.orm import Session

from app.knowledge.models import ChunkEmbedding, KnowledgeChunk
from app.llm.embedding import Vector

KnownVectors = Mapping[str, Vector]
"""Vectors of one embedder by the content hash of their text."""

_WINDOW = 64
"""Chunks looked at in one go."""


def reuse_vectors(session: Session, doc_id: UUID, embedder: str) -> None:
    """Give a document's chunks the vectors that chunks of the same text have already, in any version of anything."""
    session.execute(
        text(
            """
            INSERT INTO chunk_embeddings (chunk_id, embedder, embedding)
            SELECT DISTINCT ON (mine.id) mine.id, had.embedder, had.embedding
            FROM knowledge_chunks AS mine
            JOIN knowledge_chunks AS twin ON twin.content_hash = mine.content_hash AND twin.id <> mine.id
            JOIN chunk_embeddings AS had ON had.chunk_id = twin.id AND had.embedder = :embedder
            WHERE mine.doc_id = :doc
            ON CONFLICT DO NOTHING
            """
        ),
        {"doc": doc_id, "embedder": embedder},
    )


def chunks_without_vector(session: Session, doc_id: UUID, embedder: str) -> Sequence[KnowledgeChunk]:
    """Return the next chunks, in reading order, that this embedder has not seen."""
    embedded = exists().where(ChunkEmbedding.chunk_id == KnowledgeChunk.id, ChunkEmbedding.embedder == embedder)
    query = select(KnowledgeChunk).where(KnowledgeChunk.doc_id == doc_id, ~embedded)
    return session.scalars(query.order_by(KnowledgeChunk.ordinal).limit(_WINDOW)).all()


def store_vectors(session: Session, embedder: str, vectors: Mapping[UUID, Vector]) -> None:
    """Write vectors by chunk; one that is there already stays. A chunk that is gone meanwhile raises IntegrityError."""
    if not vectors:
        return
    rows = [{"chunk_id": chunk_id, "embedder": embedder, "embedding": vector} for chunk_id, vector in vectors.items()]
    session.execute(postgresql_insert(ChunkEmbedding).on_conflict_do_nothing(), rows)


def count_vectors(session: Session, doc_id: UUID, embedder: str) -> int:
    """Return how many of a document's chunks have a vector by this embedder."""
    query = (
        select(func.count())
        .select_from(ChunkEmbedding)
        .join(KnowledgeChunk, KnowledgeChunk.id == ChunkEmbedding.chunk_id)
        .where(KnowledgeChunk.doc_id == doc_id, ChunkEmbedding.embedder == embedder)
    )
    return session.scalar(query) or 0


def save_vectors(path: Path, embedder: str, vectors: KnownVectors) -> None:
    """Write vectors of one embedder; half precision keeps the file small and changes no rank that matters."""
    hashes = sorted(vectors)
    np.savez_compressed(
        path,
        embedder=np.array(embedder),
        hashes=np.array(hashes),
        vectors=np.array([vectors[digest] for digest in hashes], dtype=np.float16),
    )


def load_vectors(path: Path, embedder: str) -> KnownVectors:
    """Return the vectors in `path`, or none where they are another embedder's or the file is not there."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        if str(stored["embedder"]) != embedder:
            return {}
        hashes: Sequence[str] = stored["hashes"].tolist()
        vectors = stored["vectors"].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(hashes, vectors, strict=True))
