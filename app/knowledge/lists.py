"""Both result lists of all texts of a query, read from PostgreSQL in one statement: one scan, and one snapshot.

The vector list is an exact scan over active chunks; the keyword list is BM25 over the postings.
"""

import math
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from app.knowledge.fusion import Found, Scale
from app.llm.embedding import Vector

K1, B = 1.5, 0.75
TERMS_LIMIT = 64
"""Terms of a query that are looked up, the rarest first; more only repeat what these say."""


@dataclass(frozen=True, slots=True)
class BaseStatistics:
    """The base as it is now: active chunks, their mean length in terms, and in how many of them a term stands."""

    chunks: int
    average_terms: float
    chunks_with: Mapping[str, int]

    def rarity(self, term: str) -> float:
        """Return the term's inverse document frequency (BM25's, never negative); highest for an unknown term."""
        with_term = self.chunks_with.get(term, 0)
        return math.log(1 + (self.chunks - with_term + 0.5) / (with_term + 0.5))

    def mass(self, terms: Iterable[str]) -> float:
        """Return the summed rarity of terms."""
        return sum(map(self.rarity, terms))

    def share(self, asked: Collection[str], present: Container[str]) -> float:
        """Return which share in 0..1 of the mass of `asked` is `present`; 0 when nothing is asked."""
        mass = self.mass(asked)
        return self.mass(term for term in asked if term in present) / mass if mass else 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk on one list or both, with what is shown and answered with."""

    found: Found
    doc_id: UUID
    doc_version: int
    doc_title: str
    heading: str
    text: str
    section: str


@dataclass(frozen=True, slots=True)
class Spread:
    """How near the query is to the whole base: least, mean and standard deviation of all similarities."""

    lowest: float
    mean: float
    deviation: float

    @property
    def scale(self) -> Scale:
        """What fusion needs of it."""
        return Scale(self.lowest)


@dataclass(frozen=True, slots=True)
class Lists:
    """The union of both lists, in no order; `spread` is None without vectors."""

    candidates: tuple[Candidate, ...]
    spread: Spread | None


def read_statistics(session: Session, terms: Sequence[str]) -> BaseStatistics:
    """Return the statistics that these terms need."""
    row = session.execute(
        text(
            """
            SELECT coalesce(sum(chunk_count), 0)::int AS chunks, coalesce(sum(term_count), 0)::int AS terms,
                   (SELECT coalesce(jsonb_object_agg(term, chunks), '{}') FROM term_statistics
                    WHERE term = ANY(:terms)) AS chunks_with
            FROM knowledge_docs WHERE state = 'active'
            """
        ),
        {"terms": list(set(terms))},
    ).one()
    return BaseStatistics(row.chunks, row.terms / row.chunks if row.chunks else 1.0, row.chunks_with)


def read_lists(
    session: Session,
    *,
    texts: Sequence[Sequence[str]],
    statistics: BaseStatistics,
    vectors: Sequence[Vector],
    embedder: str,
    depth: int,
) -> list[Lists]:
    """Return the first `depth` of both lists for each text, given by its terms (with repeats) and its vector.

    Without `vectors` there is the keyword list only.
    """
    weights = [
        (at, term, weight) for at, terms in enumerate(texts) for term, weight in _weights(terms, statistics).items()
    ]
    rows = session.execute(
        text(_LISTS),
        {
            "texts": [at for at, _, _ in weights],
            "terms": [term for _, term, _ in weights],
            "weights": [weight for _, _, weight in weights],
            "average": statistics.average_terms,
            "k1": K1,
            "b": B,
            "vectors": ["[" + ",".join(map(str, vector.tolist())) + "]" for vector in vectors],
            "embedder": embedder,
            "depth": depth,
        },
    ).all()
    found: list[list[Row[Any]]] = [[] for _ in texts]
    for row in rows:
        found[row.text_at].append(row)
    return [_lists(of_text) for of_text in found]


def _lists(rows: Sequence[Row[Any]]) -> Lists:
    if not rows:
        return Lists((), None)
    first = rows[0]
    spread = None if first.lowest is None else Spread(first.lowest, first.mean, first.deviation)
    return Lists(
        tuple(
            Candidate(
                Found(row.chunk_id, row.similarity, row.vector_rank, row.bm25, row.keyword_rank),
                row.doc_id,
                row.version,
                row.title,
                row.heading,
                row.text,
                row.section,
            )
            for row in rows
        ),
        spread,
    )


def _weights(terms: Sequence[str], statistics: BaseStatistics) -> dict[str, float]:
    """Return the weight of each term that the base has: how often it is asked times its rarity."""
    asked = Counter(term for term in terms if term in statistics.chunks_with)
    rarest = sorted(asked, key=lambda term: (statistics.chunks_with[term], term))[:TERMS_LIMIT]
    return {term: asked[term] * statistics.rarity(term) for term in rarest}


_LISTS = """
WITH asked AS MATERIALIZED (
    SELECT place::int - 1 AS text_at, CAST(v.vector AS vector) AS vector
    FROM unnest(CAST(:vectors AS text[])) WITH ORDINALITY AS v (vector, place)
),
wanted AS (
    SELECT * FROM unnest(CAST(:texts AS int[]), CAST(:terms AS text[]), CAST(:weights AS float8[]))
        AS w (text_at, term, weight)
),
keyword AS MATERIALIZED (
    SELECT w.text_at, p.chunk_id,
           sum(w.weight * p.frequency * (:k1 + 1) / (p.frequency + :k1 * (1 - :b + :b * p.length / :average))) AS score
    FROM wanted AS w JOIN postings AS p ON p.term = w.term
    GROUP BY w.text_at, p.chunk_id
),
likeness AS MATERIALIZED (
    SELECT asked.text_at, c.id AS chunk_id, 1 - (e.embedding <=> asked.vector) AS score
    FROM knowledge_docs AS d
    JOIN knowledge_chunks AS c ON c.doc_id = d.id
    JOIN chunk_embeddings AS e ON e.chunk_id = c.id AND e.embedder = :embedder
    CROSS JOIN asked
    WHERE d.state = 'active'
),
spread AS (
    SELECT text_at, min(score) AS lowest, avg(score) AS mean, stddev_pop(score) AS deviation
    FROM likeness GROUP BY text_at
),
by_keyword AS (
    SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY text_at ORDER BY score DESC, chunk_id) AS rank FROM keyword
    ) AS ranked WHERE rank <= :depth
),
by_vector AS (
    SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY text_at ORDER BY score DESC, chunk_id) AS rank FROM likeness
    ) AS ranked WHERE rank <= :depth
)
SELECT text_at, c.id AS chunk_id, likeness.score AS similarity, by_vector.rank AS vector_rank,
       coalesce(keyword.score, 0) AS bm25, by_keyword.rank AS keyword_rank,
       d.id AS doc_id, d.version, d.title, c.heading, c.text, c.section,
       spread.lowest, spread.mean, spread.deviation
FROM (SELECT text_at, chunk_id FROM by_keyword UNION SELECT text_at, chunk_id FROM by_vector) AS candidate
JOIN knowledge_chunks AS c ON c.id = candidate.chunk_id
JOIN knowledge_docs AS d ON d.id = c.doc_id
LEFT JOIN keyword USING (text_at, chunk_id)
LEFT JOIN likeness USING (text_at, chunk_id)
LEFT JOIN by_keyword USING (text_at, chunk_id)
LEFT JOIN by_vector USING (text_at, chunk_id)
LEFT JOIN spread USING (text_at)
"""
