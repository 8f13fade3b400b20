"""The keyword index in plain SQL: postings of active chunks, and in how many chunks each term stands.

The BM25 weight of a posting is computed when searching (`lists.py`); what is kept here needs no upkeep as the
base grows. Changes are made one transaction at a time, so that two documents with common words can't deadlock.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.knowledge.segment import terms

_LOCK = 7_304_001
"""Key of the transaction-scoped lock on the index; any number that nobody else uses."""


@dataclass(frozen=True, slots=True)
class ChunkTerms:
    """The terms of one chunk with their frequencies."""

    chunk_id: UUID
    frequencies: Counter[str]


def terms_of_chunk(chunk_id: UUID, indexed_text: str) -> ChunkTerms:
    """Return a chunk's terms; slow enough to be done before the transaction that adds them."""
    return ChunkTerms(chunk_id, Counter(terms(indexed_text)))


def lock_index(session: Session) -> None:
    """Wait until no other transaction changes the index; held until this one ends."""
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})


def add_to_index(session: Session, chunks: Sequence[ChunkTerms]) -> int:
    """Add chunks under the lock; return their length in terms."""
    rows = [(chunk.chunk_id, term, count) for chunk in chunks for term, count in chunk.frequencies.items()]
    lengths = {chunk.chunk_id: chunk.frequencies.total() for chunk in chunks}
    session.execute(
        text(
            """
            INSERT INTO postings (term, chunk_id, frequency, length)
            SELECT * FROM unnest(CAST(:terms AS text[]), CAST(:chunks AS uuid[]), CAST(:counts AS int[]),
                                 CAST(:lengths AS int[]))
            """
        ),
        {
            "terms": [term for _, term, _ in rows],
            "chunks": [chunk_id for chunk_id, _, _ in rows],
            "counts": [count for _, _, count in rows],
            "lengths": [lengths[chunk_id] for chunk_id, _, _ in rows],
        },
    )
    found = Counter(term for _, term, _ in rows)
    session.execute(
        text(
            """
            INSERT INTO term_statistics (term, chunks)
            SELECT * FROM unnest(CAST(:terms AS text[]), CAST(:counts AS int[]))
            ON CONFLICT (term) DO UPDATE SET chunks = term_statistics.chunks + excluded.chunks
            """
        ),
        {"terms": list(found), "counts": list(found.values())},
    )
    return sum(lengths.values())


def remove_from_index(session: Session, doc_ids: Sequence[UUID]) -> None:
    """Take all chunks of these documents out, under the lock; they are gone from searches at the commit."""
    session.execute(
        text(
            """
            WITH gone AS (
                DELETE FROM postings USING knowledge_chunks AS chunk
                WHERE chunk.id = postings.chunk_id AND chunk.doc_id = ANY(:docs)
                RETURNING postings.term
            ),
            counted AS (SELECT term, count(*) AS chunks FROM gone GROUP BY term),
            emptied AS (
                DELETE FROM term_statistics AS held USING counted
                WHERE held.term = counted.term AND held.chunks <= counted.chunks
            )
            UPDATE term_statistics AS held SET chunks = held.chunks - counted.chunks
            FROM counted WHERE held.term = counted.term AND held.chunks > counted.chunks
            """
        ),
        {"docs": list(doc_ids)},
    )
