"""The model server hangs, breaks off in the middle of a JSON object, refuses, fails and talks nonsense; over HTTP."""

import pytest

from tests.faults.cases import Reports, case, check, perform
from tests.faults.fleet import Fleet
from tests.faults.script import Agent, Schedule

NO_MODEL = ["failed:model_unavailable"]
TOO_SLOW = ["failed:model_timed_out", "failed:model_timed_out"]
"""Such a run is retried once by itself."""
MODES = {
    "stub": ["waiting_for_review"],
    "stub;chunks=20;chunk_delay=.01": ["waiting_for_review"],
    "stub;delay=60": TOO_SLOW,
    "stub;chunks=20;chunk_delay=60": TOO_SLOW,
    "stub;chunks=40;cut=9": NO_MODEL,
    "stub;status=429": NO_MODEL,
    "stub;status=429;times=1;retry_after=0": ["waiting_for_review"],
    "stub;status=500": NO_MODEL,
    "stub;html=1": NO_MODEL,
    "stub;bad=1": ["waiting_for_escalation"],
}


def _case(mode: str) -> Schedule:
    limit_s = 2 if MODES[mode] == TOO_SLOW else 20
    agent = Agent(model=f"{mode};faults=1")
    return case(mode, agent=agent, settings={"LLM_TIMEOUT_S": str(limit_s)}, run_timeout_ms=60_000)


@pytest.fixture(scope="module")
def reports(fleet: Fleet) -> Reports:
    """What came of all modes."""
    return perform(fleet, [_case(mode) for mode in MODES])


@pytest.mark.parametrize("mode", MODES)
def test_a_run_ends_as_it_must_whatever_the_model_does(reports: Reports, mode: str) -> None:
    ticket = check(reports[mode]).tickets[0]
    assert ticket.runs == MODES[mode]


def test_a_retry_after_a_time_out_goes_on_where_the_first_run_was(reports: Reports) -> None:
    ticket = check(reports["stub;chunks=20;chunk_delay=60"]).tickets[0]
    assert ticket.origins == ["ticket", "timed_out"]
    assert ticket.events.count("step_completed") == 2  # class and search; the draft never came
