"""`flask runs`: look after runs of the agent by hand."""

from collections.abc import Callable
from uuid import UUID

import click
from redis import RedisError
from sqlalchemy.orm import Session

from app.cli.group import PlainGroup
from app.errors import NotFound
from app.httpkit.container import container
from app.ids import parse_id
from app.review.moved import who_moved
from app.review.service import regenerate
from app.runs import recovery
from app.runs.admin_queries import one_run
from app.runs.explain import Sentence, explain
from app.runs.lifecycle import RunMoved, RunPlan
from app.runs.queries import RunRow, newest_runs, run_row
from app.staff import audit
from app.tickets.lifecycle import TicketMoved
from app.tickets.queries import ticket_row

runs = PlainGroup("runs", help="Runs of the agent.")


@runs.command("sweep")
def sweep() -> None:
    """Do at once what the schedule does: end runs whose worker died, retry those due, start those nobody claimed."""
    parts = container()
    ended = _all(lambda: recovery.sweep(parts.transaction, parts.stale_policy, parts.run_plan()))
    retried = _all(lambda: recovery.retry_due(parts.transaction, parts.run_plan()))
    with parts.transaction() as session:
        audit.record(session, "runs_swept", staff_id=None, command="flask runs sweep", ended=ended, retried=retried)
    click.echo(f"Ended because their worker had died: {ended}. Retried because they were due: {retried}.")
    try:
        started = _all(lambda: recovery.enqueue_unclaimed(parts.transaction, parts.queue))
    except RedisError as error:
        raise click.ClickException("Redis is away: runs that nobody has claimed wait for it.") from error
    click.echo(f"Put into the queue again: {started}.")


class _Reference(click.ParamType[UUID | int]):
    """A run by its id, or the number of a ticket, which stands for its newest run."""

    name = "run or ticket"

    def convert(self, value: str | UUID | int, param: click.Parameter | None, ctx: click.Context | None) -> UUID | int:
        """Return an id or a number. Raises click.UsageError."""
        if not isinstance(value, str):
            return value
        number = value.removeprefix("#")
        if number.isascii() and number.isdigit() and len(number) < 19:
            return int(number)
        run_id = parse_id(value)
        if run_id is None:
            self.fail("Give the id of a run or the number of a ticket.", param, ctx)
        return run_id


@runs.command("retry")
@click.argument("run", type=_Reference())
def retry(run: UUID | int) -> None:
    """Make a new run that goes on from RUN, the newest of its ticket; if it is still active it is replaced.

    RUN is the id of a run, or the number of a ticket. The new run goes by the settings of this shell.
    """
    plan = container().run_plan()
    try:
        made, old = _retry(run, plan)
    except (RunMoved, TicketMoved) as refused:
        raise click.ClickException(_who_was_first(refused)) from refused
    planner = f"the model {plan.model}" if plan.planner == "model" else "rules, without a model"
    click.echo(f"Run {made} goes on from {old}. By the settings of this shell it is planned by {planner}.")


@runs.command("explain")
@click.argument("run", type=_Reference())
def explain_run(run: UUID | int) -> None:
    """Say in plain sentences what happened to RUN (a run's id, or a ticket's number) and what will happen next."""
    with container().sessions() as session:
        sentences = explain(session, _found(session, run).id)
    for sentence in sentences:
        click.echo(_line(sentence))


def _found(session: Session, ref: UUID | int) -> RunRow:
    """Return the run, or the newest one of a ticket. Raises NotFound."""
    if isinstance(ref, UUID):
        run = run_row(session, ref)
    else:
        ticket = ticket_row(session, ref)
        if ticket is None:
            raise NotFound("There is no such ticket.")
        run = newest_runs(session, [ticket.id]).get(ticket.id)
    if run is None:
        raise NotFound("There is no such run.")
    return run


def _retry(ref: UUID | int, plan: RunPlan) -> tuple[UUID, UUID]:
    """Return the new run and the one that it goes on from. Raises NotFound, RunMoved, TicketMoved."""
    with container().transaction() as session:
        old = _found(session, ref)
        command = "flask runs retry"
        new = regenerate(
            session, ticket_id=old.ticket_id, staff_id=None, command=command, hint="", plan=plan, run_id=old.id
        )
        return new, old.id


def _who_was_first(refused: RunMoved | TicketMoved) -> str:
    with container().sessions() as session:
        told = who_moved(session, refused).told
        newer = one_run(session, refused.run_id).newer if isinstance(refused, RunMoved) else None
    words = told.text % {"who": told.who, "time": f"{told.at:%Y-%m-%d %H:%M:%S} UTC"}
    return f"A newer run has followed it: {newer.id}. {words}" if newer else words


def _line(sentence: Sentence) -> str:
    when = f"{sentence.at:%Y-%m-%d %H:%M:%S} UTC" if sentence.at else "Now"
    return f"{when:<23}  {sentence}"


def _all(look: Callable[[], int]) -> int:
    """Look until there is nothing more to do, and return how much was done."""
    return sum(iter(look, 0))
