"""What the written schedules have in common: a ticket arrives, one worker is there, and things happen in order."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.faults.fleet import Fleet
from tests.faults.script import Action, Agent, Point, Report, Schedule, What

Reports = Mapping[str, Report]


def case(
    name: str,
    *actions: Action,
    points: Iterable[Point] = (),
    lives: int = 1,
    web_points: Iterable[Point] = (),
    **more: Any,
) -> Schedule:
    """Return a schedule in which a ticket arrives and then `actions` happen, each once the one before has.

    `points` are met by the first worker, and by as many after it as `lives` says, `web_points` by the first web;
    `more` are fields of the schedule.
    """
    fields: dict[str, Any] = {"workers": 1, "agent": Agent(delay_ms=20), "run_timeout_ms": 30_000, **more}
    return Schedule(
        name=name,
        actions=(Action(what=What.TICKET), *actions),
        in_order=True,
        worker_points=(tuple(points),) * lives,
        web_points=(tuple(web_points),),
        **fields,
    )


def perform(fleet: Fleet, cases: Iterable[Schedule]) -> Reports:
    """Perform all cases, as many at once as there are arenas, and return their reports by name."""
    return {report.name: report for report in fleet.perform_all(cases)}


def check(report: Report) -> Report:
    """Return the report of a case in which all invariants held; else fail with what did not."""
    told = "\n".join([*report.violations, report.model_dump_json(exclude={"log"}), report.log])
    assert not report.violations, told
    return report
