"""Whether what was found can answer: a small logistic judge over features of the search. Pure.

A judge belongs to one embedder (`judges.py` has them). Each question of a ticket is judged by itself, then the ticket
as a whole.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from app.agent.values import Sufficiency, Verdict
from app.knowledge.features import Features
from app.msgids import msgid

NOTHING_TO_SEARCH = msgid("The knowledge base has no documents yet.")
NOTHING_FOUND = msgid("Nothing in the knowledge base comes near the question.")
WORDS_MISSING = msgid("Important words of the question are in none of the passages found.")
ONLY_NEAR = msgid("The passages found are about something similar, but may not answer the question.")
ONLY_TOPIC = msgid("The passages found are about the topic, but may not answer the question.")
ONLY_SOME = msgid("The passages found answer only some of the questions.")
OTHER_LANGUAGE = msgid("The question is in another language than the passages found; please check that they fit.")
FITS = msgid("The passages found fit the question.")

_WORDS_MISSING_BELOW = 0.2


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

    weights: tuple[Weight, ...]
    bias: float
    weak_from: float
    sufficient_from: float

    def judge(self, features: Features) -> "Judged":
        """Return what the passages are worth for one question."""
        total = self.bias
        for part in self.weights:
            total += part.weight * (getattr(features, part.feature) - part.mean) / part.scale
        probability = 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))
        if probability >= self.sufficient_from:
            outcome = Sufficiency.SUFFICIENT
        else:
            outcome = Sufficiency.WEAK if probability >= self.weak_from else Sufficiency.INSUFFICIENT
        return Judged(features, probability, outcome, probability - self.sufficient_from)


@dataclass(frozen=True, slots=True)
class Judged:
    """One question, judged: `probability` in 0..1 that the passages answer it.

    `surplus` is how far that lies above (negative: below) what its judge calls sufficient.
    """

    features: Features
    probability: float
    outcome: Sufficiency
    surplus: float


def verdict_on(questions: Sequence[Judged], topic: Judged | None) -> Verdict:
    """Return the verdict on a ticket with these questions, at least one, about this topic (its subject).

    Sufficient is what is answered on the average, with no question left out: one ticket's questions are about one
    matter, and the shorter ones ("how do I do that?") say too little to be judged alone. If none is answered even
    weakly it is insufficient, unless the base knows the topic: a reviewer may find the answer nearby. Anything between
    is weak. The probability is the average of what is sufficient, else that of the question answered best.
    """
    probabilities = [question.probability for question in questions]
    all_near = all(question.outcome is not Sufficiency.INSUFFICIENT for question in questions)
    if all_near and fmean(question.surplus for question in questions) >= 0:
        return Verdict(outcome=Sufficiency.SUFFICIENT, probability=fmean(probabilities), reason=FITS)
    judged = [*questions, topic] if topic else list(questions)
    hopeful = any(one.outcome is not Sufficiency.INSUFFICIENT for one in judged)
    return Verdict(
        outcome=Sufficiency.WEAK if hopeful else Sufficiency.INSUFFICIENT,
        probability=max(probabilities),
        reason=_reason(questions, hopeful=hopeful),
    )


def _reason(questions: Sequence[Judged], *, hopeful: bool) -> str:
    if any(question.outcome is Sufficiency.SUFFICIENT for question in questions):
        return ONLY_SOME
    if hopeful and any(question.features.foreign for question in questions):
        return OTHER_LANGUAGE
    if max(question.features.best_coverage for question in questions) < _WORDS_MISSING_BELOW:
        return WORDS_MISSING
    if all(question.outcome is Sufficiency.INSUFFICIENT for question in questions):
        return ONLY_TOPIC if hopeful else NOTHING_FOUND
    return ONLY_NEAR
