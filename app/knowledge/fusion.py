"""Joining the two result lists: strategies behind one signature. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

RRF_K = 60
VECTOR_WEIGHT, KEYWORD_WEIGHT = 0.7, 0.3

Strategy = Literal["minmax", "rrf"]


@dataclass(frozen=True, slots=True)
class Found:
    """One chunk as the two lists have it: a rank is 1-based, None where the list's depth missed it.

    `similarity` (cosine) is None only without vectors at all, `bm25` is 0 where no term is shared.
    """

    chunk_id: UUID
    similarity: float | None
    vector_rank: int | None
    bm25: float
    keyword_rank: int | None


@dataclass(frozen=True, slots=True)
class Scale:
    """The least similarity in the whole base for this query: what min-max calls 0."""

    lowest_similarity: float


Fuse = Callable[[Sequence[Found], Scale], list[tuple[Found, float]]]


def reciprocal_rank(found: Sequence[Found], scale: Scale) -> list[tuple[Found, float]]:
    """Return the chunks with their fused scores, best first: the sum of 1 / (60 + rank) over the lists."""
    del scale
    scored = [(one, _reciprocal(one.vector_rank) + _reciprocal(one.keyword_rank)) for one in found]
    return _best_first(scored)


def min_max(found: Sequence[Found], scale: Scale) -> list[tuple[Found, float]]:
    """Return the chunks with their fused scores in 0..1, best first: 0.7 similarity + 0.3 BM25, each scaled to 0..1.

    Without vectors the scaled BM25 is the score.
    """
    most_bm25 = max((one.bm25 for one in found), default=0.0)
    similarities = [one.similarity for one in found if one.similarity is not None]
    most_similar = max(similarities, default=0.0)
    scored = []
    for one in found:
        keyword = one.bm25 / most_bm25 if most_bm25 > 0 else 0.0
        if one.similarity is None:
            scored.append((one, keyword))
            continue
        spread = most_similar - scale.lowest_similarity
        similarity = (one.similarity - scale.lowest_similarity) / spread if spread > 0 else 1.0
        scored.append((one, VECTOR_WEIGHT * similarity + KEYWORD_WEIGHT * keyword))
    return _best_first(scored)


STRATEGIES: dict[Strategy, Fuse] = {"minmax": min_max, "rrf": reciprocal_rank}


def _reciprocal(rank: int | None) -> float:
    return 1 / (RRF_K + rank) if rank is not None else 0.0


def _best_first(scored: list[tuple[Found, float]]) -> list[tuple[Found, float]]:
    return sorted(scored, key=lambda pair: (-pair[1], pair[0].chunk_id.int))
