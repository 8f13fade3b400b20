"""Seeded schedules. `FAULT_SEED=123 pytest tests/faults -k seed` performs one of them several times."""

import os

import pytest

from tests.faults.draw import draw
from tests.faults.fleet import Fleet
from tests.faults.script import Report

COUNT = 300
AGAIN = 10
"""So often a seed that is asked for is performed: the processes interleave differently each time."""


@pytest.mark.timeout(1_200)
def test_no_seeded_schedule_breaks_an_invariant(fleet: Fleet) -> None:
    seed = os.environ.get("FAULT_SEED")  # noqa: TID251 - asked for by who looks into a failure
    seeds = [int(seed)] * AGAIN if seed else list(range(1, COUNT + 1))
    reports = fleet.perform_all(map(draw, seeds))
    failed = [report for report in reports if report.violations]
    assert len(reports) == len(seeds)
    assert not failed, "\n\n".join(map(_told, failed))


def _told(report: Report) -> str:
    schedule = draw(report.seed).model_dump_json(exclude_defaults=True)
    lines = [f"FAULT_SEED={report.seed}", *report.violations, schedule, report.model_dump_json(exclude={"log"})]
    return "\n  ".join(lines) + "\n" + report.log
