"""Hybrid search: each question of a query by vector and by keywords, fused, grouped by section, and judged."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy.orm import Session, sessionmaker

from app.agent.values import Passage, SearchResult, Sufficiency, Verdict
from app.clock import monotonic
from app.errors import Unavailable
from app.knowledge.features import features_of
from app.knowledge.fusion import STRATEGIES, Scale, Strategy
from app.knowledge.judges import judge_for
from app.knowledge.lists import BaseStatistics, Candidate, Lists, read_lists, read_statistics
from app.knowledge.query import SearchQuery, parse_query
from app.knowledge.segment import terms
from app.knowledge.sufficiency import NOTHING_TO_SEARCH, Judged, verdict_on
from app.llm.embedding import Embedder, Vector
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Hit:
    """One fused candidate with its place; `ref` names the passage that the drafter gets of it, if any."""

    rank: int
    ref: str | None
    fused: float
    candidate: Candidate


class Role(StrEnum):
    """What a text of a query is: a question in it, all of it, or a ticket's subject (judged, but not drawn from)."""

    QUESTION = "question"
    WHOLE = "whole"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Part:
    """What one text of the query found, best first, and how it was judged (not where it is only the whole text)."""

    role: Role
    text: str
    hits: tuple[Hit, ...]
    judged: Judged | None


@dataclass(frozen=True, slots=True)
class Explained:
    """A search with all that led to it. `result` is what the drafter gets; times in milliseconds."""

    result: SearchResult
    hits: tuple[Hit, ...]
    parts: tuple[Part, ...]
    strategy: Strategy
    embedder: str
    embedding_ms: float
    search_ms: float

    @property
    def keyword_only(self) -> bool:
        """Whether no vector could be had, so that keywords alone decided."""
        return self.result.keyword_only

    @property
    def verdict(self) -> Verdict:
        """Whether the passages suffice."""
        return self.result.verdict


class KnowledgeSearch:
    """The Retriever port over PostgreSQL. One for a process; its embedder decides which vectors are searched."""

    def __init__(self, sessions: sessionmaker[Session], embedder: Embedder, settings: Settings) -> None:
        self._sessions = sessions
        self._embedder = embedder
        self._strategy: Strategy = settings.retrieval_fusion
        self._top_k = settings.retrieval_top_k

    async def search(self, query: str) -> SearchResult:
        """Return the passages that fit `query`, best first, with a verdict on whether they suffice."""
        return (await asyncio.to_thread(self.explain, query)).result

    def explain(self, query: str, k: int | None = None) -> Explained:
        """Return the same with both ranks, scores and features; `k` is the number of passages, by default the setting.

        Without vectors (the embedder is away) the search goes by keywords alone and says so.
        """
        asked, limit = parse_query(query), k or self._top_k
        started = monotonic()
        vectors = self._embed(asked)
        embedded = monotonic()
        with self._sessions() as session:
            statistics, lists = self._read(session, asked, vectors, depth=2 * limit)
        parts = [self._part(asked, unit, found, statistics) for unit, found in zip(asked.units, lists, strict=True)]
        hits = _with_refs(_in_turn([part.hits for part in parts if part.role is not Role.TOPIC]), limit)
        # The base may have no vectors of this embedder yet: that, too, is a search by keywords alone.
        keyword_only = all(found.spread is None for found in lists)
        result = SearchResult(
            query=asked.text,
            passages=tuple(_passage(hit) for hit in hits if hit.ref),
            verdict=_verdict(parts, statistics),
            keyword_only=keyword_only,
        )
        done = monotonic()
        return Explained(
            result,
            hits,
            tuple(parts),
            self._strategy,
            self._embedder.name,
            embedding_ms=1000 * (embedded - started),
            search_ms=1000 * (done - embedded),
        )

    def _embed(self, asked: SearchQuery) -> list[Vector]:
        """Return a vector a unit, or none at all when the embedder is away."""
        try:
            return self._embedder.embed_queries(asked.units)
        except Unavailable:
            return []

    def _read(
        self, session: Session, asked: SearchQuery, vectors: Sequence[Vector], *, depth: int
    ) -> tuple[BaseStatistics, list[Lists]]:
        unit_terms = [terms(unit) for unit in asked.units]
        statistics = read_statistics(session, [term for found in unit_terms for term in found])
        lists = read_lists(
            session,
            texts=unit_terms,
            statistics=statistics,
            vectors=vectors,
            embedder=self._embedder.name,
            depth=depth,
        )
        return statistics, lists

    def _part(self, asked: SearchQuery, unit: str, lists: Lists, statistics: BaseStatistics) -> Part:
        candidates = {candidate.found.chunk_id: candidate for candidate in lists.candidates}
        scale = lists.spread.scale if lists.spread else Scale(0.0)
        fused = STRATEGIES[self._strategy]([candidate.found for candidate in lists.candidates], scale)
        hits = tuple(
            Hit(rank, None, score, candidates[found.chunk_id]) for rank, (found, score) in enumerate(fused, start=1)
        )
        role = Role.QUESTION if unit in asked.questions else Role.WHOLE if unit == asked.text else Role.TOPIC
        if role is Role.WHOLE:
            return Part(role, unit, hits, None)
        features = features_of(unit, [hit.candidate for hit in hits], lists.spread, statistics)
        judge = judge_for(self._embedder.name if lists.spread else None, features)
        return Part(role, unit, hits, judge.judge(features))


def _verdict(parts: Sequence[Part], statistics: BaseStatistics) -> Verdict:
    if not statistics.chunks:
        return Verdict(outcome=Sufficiency.INSUFFICIENT, probability=0.0, reason=NOTHING_TO_SEARCH)
    topics = [part.judged for part in parts if part.role is Role.TOPIC]
    questions = [part.judged for part in parts if part.role is Role.QUESTION and part.judged]
    return verdict_on(questions, topics[0] if topics else None)


def _in_turn(lists: Sequence[Sequence[Hit]]) -> Iterator[Hit]:
    """Yield the hits of all lists, the best of each first, every chunk once."""
    seen: set[UUID] = set()
    for at in range(max(map(len, lists), default=0)):
        for hits in lists:
            if at < len(hits) and hits[at].candidate.found.chunk_id not in seen:
                seen.add(hits[at].candidate.found.chunk_id)
                yield hits[at]


def _with_refs(hits: Iterator[Hit], limit: int) -> tuple[Hit, ...]:
    """Number the hits anew, and name the first of each section until the drafter has `limit` passages."""
    refs: dict[tuple[UUID, str], str] = {}
    numbered: list[Hit] = []
    for rank, hit in enumerate(hits, start=1):
        section = (hit.candidate.doc_id, hit.candidate.section)
        ref = None
        if section not in refs and len(refs) < limit:
            refs[section] = ref = f"kb-{len(refs) + 1}"
        numbered.append(Hit(rank, ref, hit.fused, hit.candidate))
    return tuple(numbered)


def _passage(hit: Hit) -> Passage:
    candidate = hit.candidate
    found = candidate.found
    return Passage(
        ref=hit.ref or "",
        chunk_id=found.chunk_id,
        doc_id=candidate.doc_id,
        doc_version=candidate.doc_version,
        doc_title=candidate.doc_title,
        heading=candidate.heading,
        text=candidate.section,
        vector_score=found.similarity,
        vector_rank=found.vector_rank,
        keyword_score=found.bm25 or None,
        keyword_rank=found.keyword_rank,
        fused=hit.fused,
    )
