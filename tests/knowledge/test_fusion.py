"""Both strategies: what they must never do, and what tells them apart."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.knowledge.fusion import STRATEGIES, Found, Fuse, Scale, min_max, reciprocal_rank


def one(number: int, similarity: float | None, vector_rank: int | None, bm25: float, keyword_rank: int | None) -> Found:
    return Found(UUID(int=number), similarity, vector_rank, bm25, keyword_rank)


@st.composite
def lists(draw: st.DrawFn) -> list[Found]:
    """Candidates as the database gives them: ranks follow scores, each is on one list at least."""
    count = draw(st.integers(1, 12))
    similarities = draw(st.lists(st.floats(-1, 1), min_size=count, max_size=count))
    scores = draw(st.lists(st.floats(0, 50), min_size=count, max_size=count))
    by_similarity = sorted(range(count), key=lambda at: -similarities[at])
    by_score = sorted(range(count), key=lambda at: -scores[at])
    return [
        one(
            at + 1,
            similarities[at],
            by_similarity.index(at) + 1,
            scores[at],
            by_score.index(at) + 1 if scores[at] else None,
        )
        for at in range(count)
    ]


@pytest.mark.parametrize("fuse", STRATEGIES.values(), ids=STRATEGIES.keys())
@given(found=lists())
def test_every_candidate_comes_out_once_and_in_order(fuse: Fuse, found: list[Found]) -> None:
    fused = fuse(found, Scale(-1.0))

    assert sorted(one.chunk_id for one, _ in fused) == sorted(one.chunk_id for one in found)
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)


@pytest.mark.parametrize("fuse", STRATEGIES.values(), ids=STRATEGIES.keys())
@given(found=lists())
def test_the_order_of_the_candidates_does_not_matter(fuse: Fuse, found: list[Found]) -> None:
    assert fuse(found, Scale(-1.0)) == fuse(list(reversed(found)), Scale(-1.0))


@pytest.mark.parametrize("fuse", STRATEGIES.values(), ids=STRATEGIES.keys())
@given(found=lists())
def test_first_on_both_lists_is_first(fuse: Fuse, found: list[Found]) -> None:
    best = next((one for one in found if one.vector_rank == 1 and one.keyword_rank == 1), None)
    if best is not None:
        assert fuse(found, Scale(-1.0))[0][1] == max(score for other, score in fuse(found, Scale(-1.0)))
        assert any(
            other is best and score == fuse(found, Scale(-1.0))[0][1] for other, score in fuse(found, Scale(-1.0))
        )


def test_min_max_keeps_the_margins_that_ranks_throw_away() -> None:
    near = one(1, 0.95, 1, 1.0, 3)
    far = one(2, 0.85, 2, 2.0, 2)
    wordy = one(3, 0.84, 3, 2.2, 1)

    assert min_max([near, far, wordy], Scale(0.8))[0][0] is near
    assert reciprocal_rank([near, far, wordy], Scale(0.8))[0][1] == pytest.approx(1 / 61 + 1 / 63)


def test_without_vectors_keywords_decide() -> None:
    best, other = one(1, None, None, 9.0, 1), one(2, None, None, 3.0, 2)

    assert [found for found, _ in min_max([other, best], Scale(0.0))] == [best, other]
