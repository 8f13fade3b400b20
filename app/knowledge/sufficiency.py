"""Whether what was found can answer: a small logistic judge over features of the search. Pure.

A judge belongs to one embedder; for any other, and for searches by keywords alone, a judge over keyword features
decides. Each question of a ticket is judged by itself, then the ticket as a whole.
"""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields

from app.agent.values import Sufficiency, Verdict
from app.knowledge.fusion import Found
from app.knowledge.lists import BaseStatistics, Candidate, Spread
from app.knowledge.segment import terms, words
from app.msgids import msgid

NOTHING_TO_SEARCH = msgid("The knowledge base has no documents yet.")
NOTHING_FOUND = msgid("Nothing in the knowledge base comes near the question.")
WORDS_MISSING = msgid("Important words of the question are in none of the passages found.")
ONLY_NEAR = msgid("The passages found are about something similar, but may not answer the question.")
ONLY_SOME = msgid("The passages found answer only some of the questions.")
FITS = msgid("The passages found fit the question.")

_NEAR = 5
"""Candidates, best first, that coverage looks at."""
_WORDS_MISSING_BELOW = 0.5


@dataclass(frozen=True, slots=True)
class Features:
    """What a judge looks at, of one question; shares are in 0..1, cosines in -1..1."""

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


FEATURES: tuple[str, ...] = tuple(field.name for field in fields(Features))


@dataclass(frozen=True, slots=True)
class Weight:
    """A feature's part in a judge: `weight` per standard deviation (`scale`) from its mean."""

    feature: str
    mean: float
    scale: float
    weight: float


@dataclass(frozen=True, slots=True)
class Judge:
    """A fitted logistic judge. From `weak_from` on a question counts as weakly, from `sufficient_from` as answered."""

    embedder: str | None
    weights: tuple[Weight, ...]
    bias: float
    weak_from: float
    sufficient_from: float

    def probability(self, features: Features) -> float:
        """Return the probability in 0..1 that the passages answer the question."""
        total = self.bias
        for part in self.weights:
            total += part.weight * (getattr(features, part.feature) - part.mean) / part.scale
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


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
    return Features(
        top_similarity=top,
        margin=top - similarities[1] if len(similarities) > 1 else 0.0,
        z_score=(top - spread.mean) / spread.deviation if spread and spread.deviation > 0 else 0.0,
        bm25=by_keyword[0].bm25 / mass if by_keyword and mass else 0.0,
        coverage=statistics.share(asked, near[0].words) if near else 0.0,
        best_coverage=max((statistics.share(asked, passage.words) for passage in near), default=0.0),
        known=statistics.share(asked, statistics.chunks_with),
        title_coverage=max((statistics.share(asked, passage.title) for passage in near), default=0.0),
        title_match=max((_dice(set(asked_terms), passage.title_terms) for passage in near), default=0.0),
        same_first=float(bool(by_vector and by_keyword) and by_vector[0].chunk_id == by_keyword[0].chunk_id),
        overlap=_overlap(by_vector, by_keyword),
        length=math.log1p(len(question)),
    )


def judge_questions(judge: Judge, questions: Sequence[Features]) -> Verdict:
    """Return the verdict on a ticket from the features of each of its questions, at least one.

    All answered is sufficient, none even weakly answered is insufficient, anything between is weak. The probability
    is that of the question answered worst.
    """
    probabilities = [judge.probability(features) for features in questions]
    worst = min(probabilities)
    if worst >= judge.sufficient_from:
        return Verdict(outcome=Sufficiency.SUFFICIENT, probability=worst, reason=FITS)
    some = max(probabilities) >= judge.weak_from
    outcome = Sufficiency.WEAK if some else Sufficiency.INSUFFICIENT
    return Verdict(outcome=outcome, probability=worst, reason=_reason(judge, questions, probabilities))


def _reason(judge: Judge, questions: Sequence[Features], probabilities: Sequence[float]) -> str:
    if max(probabilities) >= judge.sufficient_from:
        return ONLY_SOME
    if max(features.best_coverage for features in questions) < _WORDS_MISSING_BELOW:
        return WORDS_MISSING
    return ONLY_NEAR if max(probabilities) >= judge.weak_from else NOTHING_FOUND


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
