"""Messages, approvals, classes set by people, cancels, sweeps and runs on the same few tickets, all at once."""

from tests.faults.cases import case, check
from tests.faults.fleet import Fleet
from tests.faults.script import Action, Agent, Schedule, What

WEBS = 3
TICKETS = 2
EACH = 8
"""Commands of each of the four threads of each web."""


def storm(mutant: str = "") -> Schedule:
    """Return the storm: what blows is drawn from the keys."""
    return case(
        f"storm {mutant}",
        *(Action(what=What.TICKET, ticket=number) for number in range(1, TICKETS)),
        *(
            Action(what=What.STORM, actor=web, ticket=TICKETS - 1, key=f"storm-{web}", lasts=EACH)
            for web in range(WEBS)
        ),
        Action(what=What.KILL_WORKER, at=0.3),
        workers=2,
        webs=WEBS,
        agent=Agent(delay_ms=5),
        stale_runs="retry",
        mutant=mutant,
    )


def test_a_storm_on_few_tickets_deadlocks_nobody(fleet: Fleet) -> None:
    report = check(fleet.perform(storm()))
    assert all(" ok" in answer for answer in report.answers)
    assert [len(ticket.runs) > 1 for ticket in report.tickets] == [True] * TICKETS
