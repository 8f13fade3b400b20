"""A worker is killed, or freezes until its lease was swept, at each boundary of each step and inside each skill."""

from typing import Any, NamedTuple

import pytest

from tests.faults.cases import Reports, case, check, perform
from tests.faults.fleet import Fleet
from tests.faults.script import Agent, Point, Schedule

SKILLS = ("classify_ticket", "search_knowledge", "draft_reply")


class At(NamedTuple):
    """A place that a worker passes, see `points`."""

    place: str
    side: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.side} {self.place} {self.nth}"


CLAIM = [At("CLAIM", "before"), At("CLAIM", "after")]
STEPS = [
    At(name, side, nth) for nth in (1, 2, 3) for name in ("START_STEP", "END_STEP") for side in ("before", "after")
]
INSIDE = [At(f"skill:{name}", side) for name in SKILLS for side in ("before", "after")]
NOT_HELD = [CLAIM[0], STEPS[-1]]
"""Where the worker does not hold the run yet, or no more."""
HELD = [at for at in CLAIM + STEPS + INSIDE if at not in NOT_HELD]
HANGING = [at for at in HELD if at.side == "after" and at.place != "CLAIM"]
COMMITS = [at for at in CLAIM + STEPS if at.side == "after"]
LAST = Point(place="END_STEP", side="after", nth=3)


def _case(fault: str, at: At, policy: str = "retry", **more: Any) -> Schedule:
    point = Point(place=at.place, side=at.side, nth=at.nth, fault=fault)
    return case(f"{fault} {at} {policy}", points=[point], stale_runs=policy, **more)


CASES = [
    *(_case("die", at, policy) for at in HELD + NOT_HELD for policy in ("mark_failed", "retry")),
    *(_case("freeze", at) for at in HELD),
    *(_case("lose_answer", at) for at in COMMITS),
    *(_case("hang", at, run_timeout_ms=1_500) for at in HANGING),
    case("die on the way to a person", points=[LAST], agent=Agent(refuses=True)),
]


@pytest.fixture(scope="module")
def reports(fleet: Fleet) -> Reports:
    """What came of all cases."""
    return perform(fleet, CASES)


@pytest.mark.parametrize("at", HELD, ids=str)
def test_a_run_whose_worker_is_killed_fails_with_a_reason(reports: Reports, at: At) -> None:
    ticket = check(reports[f"die {at} mark_failed"]).tickets[0]
    assert (ticket.runs, ticket.deaths) == (["failed:worker_lost"], [1])
    assert ticket.events[-1] == "run_failed"


@pytest.mark.parametrize("at", HELD, ids=str)
def test_a_run_whose_worker_is_killed_is_gone_on_with_where_the_policy_says_so(reports: Reports, at: At) -> None:
    ticket = check(reports[f"die {at} retry"]).tickets[0]
    assert ticket.runs == ["failed:worker_lost", "waiting_for_review"]
    assert ticket.origins == ["ticket", "worker_lost"]
    assert ticket.events.count("run_retrying") == 1


@pytest.mark.parametrize("policy", ["mark_failed", "retry"])
@pytest.mark.parametrize("at", NOT_HELD, ids=str)
def test_a_run_that_the_killed_worker_did_not_hold_suffers_nothing(reports: Reports, at: At, policy: str) -> None:
    assert check(reports[f"die {at} {policy}"]).tickets[0].runs == ["waiting_for_review"]


@pytest.mark.parametrize("at", HELD, ids=str)
def test_a_worker_that_wakes_after_its_lease_was_swept_writes_nothing(reports: Reports, at: At) -> None:
    ticket = check(reports[f"freeze {at} retry"]).tickets[0]
    assert ticket.runs == ["failed:worker_lost", "waiting_for_review"]


@pytest.mark.parametrize("at", COMMITS, ids=str)
def test_an_answer_that_is_lost_after_the_commit_changes_nothing(reports: Reports, at: At) -> None:
    ticket = check(reports[f"lose_answer {at} retry"]).tickets[0]
    assert ticket.runs == ["waiting_for_review"]
    assert ticket.events.count("step_completed") == 3


@pytest.mark.parametrize("at", HANGING, ids=str)
def test_a_run_that_waits_too_long_for_an_answer_is_retried_by_itself(reports: Reports, at: At) -> None:
    ticket = check(reports[f"hang {at} retry"]).tickets[0]
    assert ticket.runs == ["failed:timed_out", "waiting_for_review"]
    assert ticket.origins == ["ticket", "timed_out"]


def test_a_run_that_has_reached_a_person_needs_its_worker_no_more(reports: Reports) -> None:
    assert check(reports["die on the way to a person"]).tickets[0].runs == ["waiting_for_escalation"]
