"""What a search looks like: the features that say whether its passages answer. Pure."""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from app.knowledge.lists import BaseStatistics, Candidate, Spread
from app.knowledge.segment import terms, words

_NEAR = 5
"""Candidates, best first, that coverage looks at."""

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_FOREIGN_BELOW = 0.2


@dataclass(frozen=True, slots=True)
class Features:
    """What a judge looks at, of one question; shares are in 0..1, cosines in -1..1.

    Coverage is the share of the question's words, by rarity, that stand in the first passage (`best`: in the one of
    the first five that has most; `known`: anywhere in the base); `pair_coverage` is the best one's, of words and
    character pairs, and 0 where a single one is asked, which proves nothing. `same_document` says whether both lists
    put one document first. `foreign` is a question in another language than the base: words say nothing then.
    """

    top_similarity: float
    margin: float
    z_score: float
    coverage: float
    best_coverage: float
    pair_coverage: float
    known: float
    title_match: float
    same_document: float
    foreign: bool


def features_of(
    question: str, ranked: Sequence[Candidate], spread: Spread | None, statistics: BaseStatistics
) -> Features:
    """Return the features of one question; `ranked` are its fused candidates, best first."""
    asked, asked_terms = set(words(question)), set(terms(question))
    near = [_near_passage(one.doc_title, one.heading, one.section) for one in ranked[:_NEAR]]
    by_vector = sorted((c for c in ranked if c.found.vector_rank), key=lambda c: c.found.vector_rank or 0)
    by_keyword = sorted((c for c in ranked if c.found.keyword_rank), key=lambda c: c.found.keyword_rank or 0)
    similarities = [candidate.found.similarity or 0.0 for candidate in by_vector]
    top = similarities[0] if similarities else 0.0
    enough = len(asked_terms) > 1
    known = statistics.share(asked, statistics.chunks_with)
    return Features(
        top_similarity=top,
        margin=top - similarities[1] if len(similarities) > 1 else 0.0,
        z_score=(top - spread.mean) / spread.deviation if spread and spread.deviation > 0 else 0.0,
        coverage=statistics.share(asked, near[0].words) if near else 0.0,
        best_coverage=max((statistics.share(asked, passage.words) for passage in near), default=0.0),
        pair_coverage=max((statistics.share(asked_terms, one.terms) for one in near if enough), default=0.0),
        known=known,
        title_match=max((_dice(asked_terms, passage.title_terms) for passage in near), default=0.0),
        same_document=float(bool(by_vector and by_keyword) and by_vector[0].doc_id == by_keyword[0].doc_id),
        foreign=known < _FOREIGN_BELOW and bool(asked) and not _CHINESE.search(question),
    )


@dataclass(frozen=True, slots=True)
class _NearPassage:
    """What words a candidate has: all that the drafter would get with title and heading, and the last of these."""

    title_terms: frozenset[str]
    words: frozenset[str]
    terms: frozenset[str]


@lru_cache(maxsize=512)
def _near_passage(title: str, heading: str, section: str) -> _NearPassage:
    """Segmenting costs a millisecond, and the questions of a ticket find the same passages."""
    whole = f"{title} {heading}\n{section}"
    # What a heading adds to its title is what a question is most often put like.
    own = frozenset(terms(heading or title))
    return _NearPassage(own, frozenset(words(whole)), frozenset(terms(whole)))


def _dice(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0
