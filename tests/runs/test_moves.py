"""The table of moves, walked at random: what a run can go through, and that it can't be lost on the way."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.runs.lifecycle import FINAL, MOVES, sources
from app.runs.models import ACTIVE, RunStatus

S = RunStatus


@st.composite
def walks(draw: st.DrawFn) -> list[RunStatus]:
    """A run's states from its creation on, along allowed moves only."""
    walk = [S.CREATED]
    for _ in range(draw(st.integers(0, 12))):
        targets = sorted(MOVES[walk[-1]])
        if not targets:
            break
        walk.append(draw(st.sampled_from(targets)))
    return walk


@given(walks())
def test_a_final_state_is_the_last(walk: list[RunStatus]) -> None:
    assert all(status not in FINAL for status in walk[:-1])


@given(walks())
def test_nothing_is_completed_that_no_person_has_looked_at(walk: list[RunStatus]) -> None:
    if walk[-1] is S.COMPLETED:
        assert walk[-2] in (S.WAITING_FOR_REVIEW, S.WAITING_FOR_ESCALATION)


@given(walks())
def test_a_review_follows_work_or_an_escalation(walk: list[RunStatus]) -> None:
    for before, after in pairwise(walk):
        if after is S.WAITING_FOR_REVIEW:
            assert before in (S.RUNNING, S.WAITING_FOR_ESCALATION)


@given(walks())
def test_every_state_before_the_last_is_active_and_holds_the_thread(walk: list[RunStatus]) -> None:
    assert all((status in ACTIVE) != (status in FINAL) for status in walk)


@given(st.sampled_from(sorted(S)))
def test_a_person_may_end_any_run_that_has_not_ended(status: RunStatus) -> None:
    if status not in FINAL:
        assert {S.CANCELLED, S.SUPERSEDED} <= MOVES[status]


@given(st.sampled_from(sorted(S)))
def test_sources_are_the_moves_read_backwards(target: RunStatus) -> None:
    assert set(sources(target)) == {status for status in S if target in MOVES[status]}


def test_every_state_can_be_reached_and_left_for_a_final_one() -> None:
    reached, frontier = {S.CREATED}, {S.CREATED}
    while frontier:
        frontier = {target for status in frontier for target in MOVES[status]} - reached
        reached |= frontier
    assert reached == set(S)


def test_only_waiting_runs_can_be_claimed() -> None:
    assert set(sources(S.RUNNING)) == {S.CREATED, S.RETRYING}
