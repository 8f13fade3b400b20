"""The harness itself is tested: each fault that is put into the product must break the invariant
that it names, and the same schedules must be green without it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.faults.cases import case, check, perform
from tests.faults.fleet import Fleet
from tests.faults.mutants import MUTANTS
from tests.faults.scale import LEASE_S
from tests.faults.script import Action, Agent, Point, Schedule, What
from tests.faults.test_storm import storm

TRIES = 3
"""A mutant that survives so many performances of its schedule is one that the harness does not see."""
APPROVE = Action(what=What.APPROVE, when="waiting", patience=10, key="one")
BEFORE_STEP_2_ENDS = Point(place="END_STEP", nth=2, fault="freeze")
SENDER_FREEZES = Point(place="channel", fault="freeze")
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


def _slow(mutant: str) -> Schedule:
    """A worker takes longer over a run than a lease lasts."""
    return case(f"slow {mutant}", agent=Agent(delay_ms=400), mutant=mutant)


def _time_out(mutant: str) -> Schedule:
    """A skill hangs until its run's time is over; the retry goes well."""
    points = [Point(place="skill:draft_reply", fault="hang")]
    return case(f"time-out {mutant}", points=points, run_timeout_ms=700, mutant=mutant)


def _reply(mutant: str) -> Schedule:
    """A draft is approved and sent."""
    return case(f"reply {mutant}", APPROVE, mutant=mutant)


def _crossing(mutant: str) -> Schedule:
    """The customer writes while a reply is leaving."""
    message = Action(what=What.MESSAGE, when="frozen", patience=10, key="m", text="还没有收到。")
    return case(f"crossing {mutant}", APPROVE, message, points=[SENDER_FREEZES], mutant=mutant)


def _redraft_while_leaving(mutant: str) -> Schedule:
    """A person wants another draft while a reply is leaving, and approves what is there in the end."""
    again = Action(what=What.REGENERATE, when="frozen", patience=10, key="again")
    second = Action(what=What.APPROVE, when="settled", patience=10, key="two")
    return case(f"redraft {mutant}", APPROVE, again, second, points=[SENDER_FREEZES], mutant=mutant)


def _overtaken_sender(mutant: str) -> Schedule:
    """A sender freezes, another one takes over and freezes too, and then the first one wakes."""
    more: dict[str, Any] = {"workers": 2, "lives": 2, "frozen_for_s": 4 * LEASE_S}
    return case(f"overtaken {mutant}", APPROVE, points=[SENDER_FREEZES], mutant=mutant, **more)


def _recall(mutant: str) -> Schedule:
    """The customer writes before an approved reply has begun to leave: nobody is there who could send it."""
    message = Action(what=What.MESSAGE, when="answered", patience=10, key="m", text="还没有收到。")
    freeze = Action(what=What.FREEZE_WORKER, when="waiting", patience=10, lasts=1.0)
    return case(f"recall {mutant}", freeze, APPROVE, message, mutant=mutant)


DIRECTED = {
    "guard_off": _late_writer,
    "guard_last": _late_writer,
    "fence_ignored": _late_hand_back,
    "publish_before_commit": _approval_that_dies,
    "lock_order_reversed": storm,
    "live_leases_swept": _slow,
    "retries_dropped": _time_out,
    "replies_lost": _reply,
    "leaving_replies_recalled": _crossing,
    "crossed_replies_resolve": _crossing,
    "leaving_replies_ignored": _redraft_while_leaving,
    "overtaken_senders_finish": _overtaken_sender,
    "ends_of_replies_untold": _recall,
    "people_off_the_record": _reply,
}


@pytest.fixture(scope="module")
def complaints(fleet: Fleet) -> Mapping[str, Sequence[str]]:
    """What was complained of with each mutant, performed until the invariant that it breaks was among that."""
    told: dict[str, list[str]] = {mutant: [] for mutant in MUTANTS}
    for _ in range(TRIES):
        left = [mutant for mutant in MUTANTS if not _is_seen(mutant, told[mutant])]
        for report in fleet.perform_all(DIRECTED[mutant](mutant) for mutant in left):
            told[report.mutant] += report.violations
    return told


def _is_seen(mutant: str, violations: Sequence[str]) -> bool:
    return any(violation.startswith(f"{MUTANTS[mutant].breaks}:") for violation in violations)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_breaks_the_invariant_that_it_names(complaints: Mapping[str, Sequence[str]], mutant: str) -> None:
    assert _is_seen(mutant, complaints[mutant]), f"{mutant} survived; {MUTANTS[mutant].breaks} is not in\n" + "\n".join(
        complaints[mutant]
    )


def test_the_same_schedules_are_green_without_a_mutant(fleet: Fleet) -> None:
    for report in perform(fleet, [schedule("") for schedule in dict.fromkeys(DIRECTED.values())]).values():
        check(report)
