"""The verdict on a ticket from the verdicts on its questions, and the judges that ship."""

from dataclasses import replace

import pytest

from app.agent.values import Sufficiency
from app.knowledge.features import Features
from app.knowledge.judges import BY_EMBEDDER, BY_KEYWORDS, FOREIGN, judge_for
from app.knowledge.sufficiency import (
    FITS,
    NOTHING_FOUND,
    ONLY_NEAR,
    ONLY_SOME,
    ONLY_TOPIC,
    WORDS_MISSING,
    Judged,
    verdict_on,
)
from app.llm.embedding import LOCAL_NAME

MIDDLING = Features(
    top_similarity=0.91,
    margin=0.008,
    z_score=4.4,
    coverage=0.55,
    best_coverage=0.55,
    pair_coverage=0.4,
    known=0.8,
    title_match=0.4,
    same_document=0.0,
    foreign=False,
)
ANSWERED = Judged(MIDDLING, 0.9, Sufficiency.SUFFICIENT, 0.2)
NEARLY = Judged(MIDDLING, 0.6, Sufficiency.WEAK, -0.1)
NEAR = Judged(MIDDLING, 0.4, Sufficiency.WEAK, -0.3)
FAR = Judged(MIDDLING, 0.1, Sufficiency.INSUFFICIENT, -0.6)


@pytest.mark.parametrize(
    ("questions", "topic", "outcome", "probability", "reason"),
    [
        ([ANSWERED], None, Sufficiency.SUFFICIENT, 0.9, FITS),
        ([ANSWERED, NEARLY], FAR, Sufficiency.SUFFICIENT, 0.75, FITS),
        ([ANSWERED, NEAR], None, Sufficiency.WEAK, 0.9, ONLY_SOME),
        ([ANSWERED, ANSWERED, ANSWERED, FAR], None, Sufficiency.WEAK, 0.9, ONLY_SOME),
        ([NEARLY], ANSWERED, Sufficiency.WEAK, 0.6, ONLY_NEAR),
        ([FAR], ANSWERED, Sufficiency.WEAK, 0.1, ONLY_TOPIC),
        ([FAR, FAR], FAR, Sufficiency.INSUFFICIENT, 0.1, NOTHING_FOUND),
        (
            [replace(FAR, features=replace(MIDDLING, best_coverage=0.1))],
            None,
            Sufficiency.INSUFFICIENT,
            0.1,
            WORDS_MISSING,
        ),
    ],
)
def test_a_ticket_is_as_sufficient_as_its_questions(
    questions: list[Judged], topic: Judged | None, outcome: Sufficiency, probability: float, reason: str
) -> None:
    verdict = verdict_on(questions, topic)

    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert verdict.probability == pytest.approx(probability)


def test_the_built_in_embedder_has_a_judge_and_an_unknown_one_is_judged_by_keywords() -> None:
    assert judge_for(LOCAL_NAME, MIDDLING) is BY_EMBEDDER[LOCAL_NAME]
    assert judge_for("somebody-elses/9", MIDDLING) is BY_KEYWORDS
    assert judge_for(None, MIDDLING) is BY_KEYWORDS
    assert judge_for(LOCAL_NAME, replace(MIDDLING, foreign=True)) is FOREIGN


@pytest.mark.parametrize("feature", ["top_similarity", "pair_coverage", "same_document"])
def test_more_of_a_feature_never_makes_it_less_sufficient(feature: str) -> None:
    judge = BY_EMBEDDER[LOCAL_NAME]
    more = replace(MIDDLING, **{feature: getattr(MIDDLING, feature) + 0.05})

    assert judge.judge(more).probability > judge.judge(MIDDLING).probability


def test_a_question_in_another_language_is_never_sufficient_by_itself() -> None:
    certain = replace(MIDDLING, top_similarity=1.0, margin=0.5, z_score=12.0, foreign=True)

    assert FOREIGN.judge(certain).outcome is Sufficiency.WEAK
