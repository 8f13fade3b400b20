"""What people do at the wrong moment: a web process that dies during an approval, two clicks, a cancel, a message."""

import pytest

from tests.faults.cases import Reports, case, check, perform
from tests.faults.fleet import Fleet
from tests.faults.script import Action, Agent, Point, Schedule, What

APPROVE = Action(what=What.APPROVE, when="waiting", patience=10, key="one")
COMMIT_OF_APPROVAL = 3
"""The web's third transaction: the ticket came in, the page was looked at."""
STATEMENTS = range(1, 46, 2)
"""Statements of those transactions, among which are all of the approval's."""
SIDES = ("before", "after")
FAULTS = ("die", "freeze")
SLOW = Agent(delay_ms=300)


def _approval(name: str, point: Point) -> Schedule:
    return case(name, APPROVE, web_points=[point])


def _at_commit(side: str, fault: str) -> Schedule:
    return _approval(f"{fault} {side}", Point(place="commit", side=side, nth=COMMIT_OF_APPROVAL, fault=fault))


CASES = [
    *(_at_commit(side, fault) for side in SIDES for fault in FAULTS),
    *(_approval(f"statement {nth}", Point(place="sql", nth=nth)) for nth in STATEMENTS),
    *(
        case(f"{fault} {side} channel", APPROVE, points=[Point(place="channel", side=side, fault=fault)])
        for side in SIDES
        for fault in FAULTS
    ),
    case("two clicks", APPROVE, Action(what=What.APPROVE, actor=1, key="one"), webs=2),
    case("two people", APPROVE, Action(what=What.APPROVE, actor=1, key="two"), webs=2),
    case("cancel", Action(what=What.CANCEL, when="steps:2", patience=10), agent=SLOW),
    case(
        "cancel while Valkey is away",
        Action(what=What.VALKEY_AWAY, when="steps:2", patience=10, lasts=1.0),
        Action(what=What.CANCEL),
        agent=SLOW,
    ),
    case("cancel a frozen worker's run", Action(what=What.CANCEL, when="frozen", patience=10),
         points=[Point(place="END_STEP", nth=2, fault="freeze")]),
    case("message", Action(what=What.MESSAGE, when="steps:2", patience=10, key="m", text="还没有收到。"), agent=SLOW),
    case("message at the review", Action(what=What.MESSAGE, when="waiting", patience=10, key="m", text="还没有收到。")),
    case("closed", Action(what=What.STATUS, when="steps:2", patience=10, text="closed"), agent=SLOW),
]  # fmt: skip


@pytest.fixture(scope="module")
def reports(fleet: Fleet) -> Reports:
    """What came of all cases."""
    return perform(fleet, CASES)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("side", SIDES)
def test_a_web_that_fails_at_the_commit_of_an_approval_sends_one_reply(reports: Reports, side: str, fault: str) -> None:
    report = check(reports[f"{fault} {side}"])
    assert report.answers[-1] == "approve:one ok"
    ticket = report.tickets[0]
    assert (ticket.status, ticket.deliveries, ticket.messages) == ("resolved", ["sent"], ["customer", "reply"])
    assert ticket.events.count("reply_approved") == 1


@pytest.mark.parametrize("nth", STATEMENTS)
def test_a_web_that_dies_at_any_statement_sends_one_reply(reports: Reports, nth: int) -> None:
    ticket = check(reports[f"statement {nth}"]).tickets[0]
    assert (ticket.runs, ticket.deliveries) == (["completed"], ["sent"])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("side", SIDES)
def test_a_sender_that_fails_halfway_leaves_one_reply(reports: Reports, side: str, fault: str) -> None:
    ticket = check(reports[f"{fault} {side} channel"]).tickets[0]
    assert (ticket.status, ticket.deliveries, ticket.messages) == ("resolved", ["sent"], ["customer", "reply"])


@pytest.mark.parametrize("who", ["two clicks", "two people"])
def test_two_approvals_at_once_send_one_reply(reports: Reports, who: str) -> None:
    report = check(reports[who])
    assert report.tickets[0].messages == ["customer", "reply"]
    assert "ok" in report.answers[1] + report.answers[2]


@pytest.mark.parametrize("name", ["cancel", "cancel while Valkey is away", "cancel a frozen worker's run"])
def test_a_cancelled_run_keeps_its_finished_steps_and_says_no_more(reports: Reports, name: str) -> None:
    ticket = check(reports[name]).tickets[0]
    assert ticket.runs == ["cancelled"]
    assert ticket.events.count("step_completed") == 1
    assert ticket.events[-1] == "run_cancelled"


@pytest.mark.parametrize("name", ["message", "message at the review"])
def test_a_message_supersedes_the_run_and_starts_another(reports: Reports, name: str) -> None:
    ticket = check(reports[name]).tickets[0]
    assert ticket.runs == ["superseded", "waiting_for_review"]
    assert ticket.origins == ["ticket", "message"]
    assert ticket.messages == ["customer", "customer"]


def test_closing_a_ticket_stops_its_run(reports: Reports) -> None:
    ticket = check(reports["closed"]).tickets[0]
    assert (ticket.status, ticket.runs) == ("closed", ["cancelled"])
