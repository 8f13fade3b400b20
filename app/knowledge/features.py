"""What a search looks like: the features that say whether its passages answer. Pure."""

import math
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from app.knowledge.fusion import Found
from app.knowledge.lists import BaseStatistics, Candidate, Spread
from app.knowledge.segment import terms, words

_NEAR = 5
"""Candidates, best first, that coverage looks at."""

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_FOREIGN_BELOW = 0.2


@dataclass(frozen=True, slots=True)
class Features:
    """What a judge looks at, of one question; shares are in 0..1, cosines in -1..1.

    Coverage is the share of the question's words, by rarity, that stand in the first passage (`best`: in any of the
    first five; `title`: in its title and heading; `known`: anywhere in the base). `foreign` is a question in another
    language than the base: words say nothing then.
    """

    top_similarity: float
    margin: float
    z_score: float
    bm25: float
    coverage: float
    best_coverage: float
    known: float
    title_coverage: float
    title_match: float
    same_first: float
    overlap: float
    length: float
    foreign: bool


def features_of(
    question: str, ranked: Sequence[Candidate], spread: Spread | None, statistics: BaseStatistics
) -> Features:
    """Return the features of one question; `ranked` are its fused candidates, best first."""
    asked, asked_terms = set(words(question)), terms(question)
    near = [_NearPassage.of(candidate) for candidate in ranked[:_NEAR]]
    by_vector = sorted((c.found for c in ranked if c.found.vector_rank), key=lambda f: f.vector_rank or 0)
    by_keyword = sorted((c.found for c in ranked if c.found.keyword_rank), key=lambda f: f.keyword_rank or 0)
    similarities = [found.similarity or 0.0 for found in by_vector]
    top = similarities[0] if similarities else 0.0
    mass = statistics.mass(asked_terms)
    known = statistics.share(asked, statistics.chunks_with)
    return Features(
        top_similarity=top,
        margin=top - similarities[1] if len(similarities) > 1 else 0.0,
        z_score=(top - spread.mean) / spread.deviation if spread and spread.deviation > 0 else 0.0,
        bm25=by_keyword[0].bm25 / mass if by_keyword and mass else 0.0,
        coverage=statistics.share(asked, near[0].words) if near else 0.0,
        best_coverage=max((statistics.share(asked, passage.words) for passage in near), default=0.0),
        known=known,
        title_coverage=max((statistics.share(asked, passage.title) for passage in near), default=0.0),
        title_match=max((_dice(set(asked_terms), passage.title_terms) for passage in near), default=0.0),
        same_first=float(bool(by_vector and by_keyword) and by_vector[0].chunk_id == by_keyword[0].chunk_id),
        overlap=_overlap(by_vector, by_keyword),
        length=math.log1p(len(question)),
        foreign=known < _FOREIGN_BELOW and bool(asked) and not _CHINESE.search(question),
    )


@dataclass(frozen=True, slots=True)
class _NearPassage:
    """The words of a candidate: of its title and heading, and of all that the drafter would get."""

    title: frozenset[str]
    title_terms: frozenset[str]
    words: frozenset[str]

    @classmethod
    def of(cls, candidate: Candidate) -> "_NearPassage":
        name = f"{candidate.doc_title} {candidate.heading}"
        title = frozenset(words(name))
        # What a heading adds to its title is what a question is most often put like.
        own = frozenset(terms(candidate.heading or candidate.doc_title))
        return cls(title, own, title | frozenset(words(candidate.section)))


def _dice(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0


def _overlap(by_vector: Sequence[Found], by_keyword: Sequence[Found]) -> float:
    both = {found.chunk_id for found in by_vector[:_NEAR]} & {found.chunk_id for found in by_keyword[:_NEAR]}
    return len(both) / _NEAR
