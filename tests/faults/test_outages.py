"""All processes die at once; Valkey goes away, is wiped or hangs; PostgreSQL restarts; each in the middle of a run."""

import pytest

from tests.faults.cases import Reports, case, check, perform
from tests.faults.fleet import Fleet
from tests.faults.script import Action, Agent, Point, Schedule, What

SLOW = Agent(delay_ms=150)
AT_WORK = {"when": "steps:2", "patience": 10}
VALKEY = (What.FLUSH_VALKEY, What.VALKEY_AWAY, What.VALKEY_HANGS)
POSTGRES = (What.RESTART_POSTGRES, What.CRASH_POSTGRES)
ALL_TICKETS = tuple(Action(what=What.TICKET, ticket=number) for number in range(1, 4))
EVERYBODY = (
    Action(what=What.KILL_WORKERS, when="steps:2", patience=10),
    Action(what=What.KILL_WEB),
    Action(what=What.KILL_SWEEPER),
)


def _outage(what: What, **more: float) -> Schedule:
    return case(what, Action(what=what, **AT_WORK, **more), agent=SLOW)


CASES = [
    *(_outage(what, lasts=0.6) for what in VALKEY),
    case("stop", Action(what=What.STOP_WORKER, **AT_WORK), agent=SLOW),
    case("all at once", *ALL_TICKETS, *EVERYBODY, agent=SLOW, workers=2, stale_runs="retry"),
    case("again and again", points=[Point(place="skill:draft_reply")], lives=9, stale_runs="retry"),
]


@pytest.fixture(scope="module")
def reports(fleet: Fleet) -> Reports:
    """What came of the cases that touch their own arena only."""
    return perform(fleet, CASES)


@pytest.mark.parametrize("what", VALKEY)
def test_a_run_goes_on_whatever_becomes_of_valkey(reports: Reports, what: What) -> None:
    ticket = check(reports[what]).tickets[0]
    assert ticket.runs == ["waiting_for_review"]
    assert ticket.events.count("run_started") == 1


@pytest.mark.parametrize("what", POSTGRES)
def test_a_run_outlives_a_restart_of_postgresql(fleet: Fleet, what: What) -> None:
    ticket = check(fleet.perform(_outage(what))).tickets[0]
    assert ticket.runs[-1] in ("waiting_for_review", "failed:database_away", "failed:worker_lost")


def test_a_worker_that_stops_hands_its_run_back(reports: Reports) -> None:
    ticket = check(reports["stop"]).tickets[0]
    assert ticket.runs == ["waiting_for_review"]
    assert ticket.events.count("run_started") == 2
    assert ticket.events.count("run_retrying") == 1


def test_runs_whose_workers_were_all_killed_at_once_are_gone_on_with(reports: Reports) -> None:
    tickets = check(reports["all at once"]).tickets
    assert len(tickets) == 4
    assert [ticket.runs[-1] for ticket in tickets] == ["waiting_for_review"] * 4
    assert sum(ticket.runs.count("failed:worker_lost") for ticket in tickets) >= 1


def test_a_run_that_kills_its_workers_is_set_aside(reports: Reports) -> None:
    ticket = check(reports["again and again"]).tickets[0]
    assert ticket.runs == ["failed:worker_lost", "failed:worker_lost", "failed:set_aside"]
    assert ticket.deaths == [1, 2, 3]
