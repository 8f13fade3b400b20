"""What the operations page shows, read once: a list of runs, the counts of all lists, and the parts around them.

Four statements, whatever the lists hold, and a few more for each row that is open.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from flask import request
from sqlalchemy.orm import Session

from app.db.signals import JobName
from app.httpkit.container import container
from app.ids import parse_id
from app.runs.admin_lists import RunList
from app.runs.admin_queries import EventRow, RunPage, WorkerRow, events_of, run_counts, run_list, workers
from app.runs.explain import Sentence, explain
from app.runs.overlooked import overlooked_for
from app.runs.queries import StepRow, steps_of
from app.staff import queries as staff_queries
from app.web import run_facts
from app.web.health import redis_answers

OPEN_MOST = 10
HELD_MOST = 50
"""Rows that a page may hold on to: open ones, and those acted on that have left their list."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What an open row shows beneath it: the run's story, its steps, and its events, each with its facts in words."""

    story: tuple[Sentence, ...]
    steps: tuple[StepRow, ...]
    events: tuple[tuple[EventRow, str], ...]


@dataclass(frozen=True, slots=True)
class Board:
    """The page as an address names it. `opened` are the open rows, `held` those that stay though they left the list.

    `overlooked` is for how long nothing has been swept that should have been; None when all is in order.
    """

    shown: RunList
    after: UUID | None
    page: RunPage
    counts: Mapping[RunList, int]
    workers: tuple[WorkerRow, ...]
    redis: bool
    overlooked: timedelta | None
    opened: Mapping[UUID, Opened]
    held: frozenset[UUID]

    @property
    def query(self) -> dict[str, str]:
        """Return the place in the lists as arguments for `url_for`."""
        place = {"list": self.shown.value}
        return place | {"after": str(self.after)} if self.after else place


def read_board() -> Board:
    """Read the page that the request names; what it names wrongly is left out."""
    shown = list_named() or RunList.RUNNING
    after = parse_id(request.args.get("after", ""))
    opened, held = _ids("open", OPEN_MOST), _ids("held", HELD_MOST)
    redis = redis_answers()  # before a session is held: one that hangs takes its time
    with container().sessions() as session:
        page = run_list(session, shown, after, also=opened | held)
        return Board(
            shown=shown,
            after=after,
            page=page,
            counts=run_counts(session),
            workers=workers(session),
            redis=redis,
            overlooked=overlooked_for(session, lambda run_id: not redis or _waits_in_queue(run_id)),
            opened={run.id: read_opened(session, run.id) for run in page.runs if run.id in opened},
            held=held,
        )


def list_named() -> RunList | None:
    """Return the list that the request names, or where a person came from to a run of its own."""
    name = request.args.get("list")
    return RunList(name) if name in {member.value for member in RunList} else None


def _waits_in_queue(run_id: UUID) -> bool:
    return run_id in container().queue.waiting(JobName.EXECUTE_RUN)


def read_opened(session: Session, run_id: UUID) -> Opened:
    """Read what an open row shows."""
    events = events_of(session, run_id)
    names = staff_queries.names(session, run_facts.people(events))
    with_facts = tuple((event, run_facts.facts(event, names)) for event in events)
    return Opened(explain(session, run_id), steps_of(session, run_id), with_facts)


def _ids(name: str, most: int) -> frozenset[UUID]:
    given = (parse_id(value) for value in request.args.getlist(name)[:most])
    return frozenset(run_id for run_id in given if run_id is not None)
