"""The harness itself is tested: each fault that is put into the product must turn it red, and nothing else may."""

import pytest

from tests.faults.cases import case, check, perform
from tests.faults.fleet import Fleet
from tests.faults.mutants import MUTANTS
from tests.faults.script import Action, Agent, Point, Schedule, What
from tests.faults.test_storm import storm

TRIES = 3
"""A mutant that survives so many performances of its schedule is one that the harness does not see."""
APPROVE = Action(what=What.APPROVE, when="waiting", patience=10, key="one")
BEFORE_STEP_2_ENDS = Point(place="END_STEP", nth=2, fault="freeze")
HAND_BACK = {"place": "END_RUN", "side": "after"}


def _late_writer(mutant: str) -> Schedule:
    """A worker freezes before it writes, its run is cancelled meanwhile, and then it writes."""
    cancel = Action(what=What.CANCEL, when="frozen", patience=10)
    return case(f"late writer {mutant}", cancel, points=[BEFORE_STEP_2_ENDS], mutant=mutant)


def _late_hand_back(mutant: str) -> Schedule:
    """A worker hands its run back, freezes, does not get the answer, and says it again while another has the run."""
    return Schedule(
        name=f"late hand-back {mutant}",
        actions=(
            Action(what=What.FREEZE_WORKER, actor=1, lasts=60),
            Action(what=What.TICKET),
            Action(what=What.STOP_WORKER, when="steps:1", patience=10),
            Action(what=What.WAKE_WORKER, actor=1, when="frozen:2", patience=10),
            Action(what=What.WAKE_WORKER, actor=0, when="running", patience=10),
        ),
        frozen_for_s=60,
        in_order=True,
        worker_points=((Point(fault="freeze", **HAND_BACK), Point(fault="lose_answer", **HAND_BACK)),),
        agent=Agent(delay_ms=1000),
        mutant=mutant,
    )


def _approval_that_dies(mutant: str) -> Schedule:
    """A web dies before the commit of an approval."""
    points = [Point(place="commit", nth=3)]
    return case(f"approval {mutant}", APPROVE, web_points=points, mutant=mutant)


DIRECTED = {
    "guard_off": _late_writer,
    "guard_last": _late_writer,
    "fence_ignored": _late_hand_back,
    "publish_before_commit": _approval_that_dies,
    "lock_order_reversed": storm,
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_turns_the_harness_red(fleet: Fleet, mutant: str) -> None:
    schedule = DIRECTED[mutant](mutant)
    assert any(fleet.perform(schedule).violations for _ in range(TRIES)), f"{mutant} survived"


def test_the_same_schedules_are_green_without_a_mutant(fleet: Fleet) -> None:
    for report in perform(fleet, [schedule("") for schedule in DIRECTED.values()]).values():
        check(report)
