"""The judges that ship: weights fitted on development data, one judge an embedder, and one for keywords alone."""

from app.knowledge.sufficiency import Judge, Weight

KEYWORD_JUDGE = Judge(
    embedder=None,
    weights=(Weight("best_coverage", 0.6, 0.2, 1.0), Weight("coverage", 0.5, 0.2, 0.5)),
    bias=0.0,
    weak_from=0.35,
    sufficient_from=0.7,
)

JUDGES: tuple[Judge, ...] = ()


def judge_for(embedder: str | None) -> Judge:
    """Return the judge fitted for `embedder`, else (and for None: no vectors) the one over keyword features."""
    return next((judge for judge in JUDGES if judge.embedder == embedder), KEYWORD_JUDGE)
