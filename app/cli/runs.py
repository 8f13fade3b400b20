"""`flask runs`: look after runs of the agent by hand."""

from collections.abc import Callable
from uuid import UUID

import click
from redis import RedisError

from app.cli.group import PlainGroup
from app.errors import NotFound
from app.httpkit.container import container
from app.review.moved import who_moved
from app.review.service import regenerate
from app.runs import recovery
from app.runs.explain import Sentence, explain
from app.runs.lifecycle import RunMoved
from app.runs.queries import run_row
from app.staff import audit
from app.tickets.lifecycle import TicketMoved

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


@runs.command("retry")
@click.argument("run_id", type=click.UUID)
def retry(run_id: UUID) -> None:
    """Make a new run that goes on from RUN_ID, the newest of its ticket; if it is still active it is replaced."""
    try:
        made = _retry(run_id)
    except (RunMoved, TicketMoved) as refused:
        raise click.ClickException(_who_was_first(refused)) from refused
    click.echo(f"Run {made} goes on from it.")


@runs.command("explain")
@click.argument("run_id", type=click.UUID)
def explain_run(run_id: UUID) -> None:
    """Say in plain sentences what happened to RUN_ID and what will happen next."""
    with container().sessions() as session:
        sentences = explain(session, run_id)
    for sentence in sentences:
        click.echo(_line(sentence))


def _retry(run_id: UUID) -> UUID:
    parts = container()
    with parts.transaction() as session:
        run = run_row(session, run_id)
        if run is None:
            raise NotFound("There is no such run.")
        return regenerate(
            session,
            ticket_id=run.ticket_id,
            staff_id=None,
            command="flask runs retry",
            hint="",
            plan=parts.run_plan(),
            run_id=run_id,
        )


def _who_was_first(refused: RunMoved | TicketMoved) -> str:
    with container().sessions() as session:
        told = who_moved(session, refused).told
    return told.text % {"who": told.who, "time": f"{told.at:%Y-%m-%d %H:%M:%S} UTC"}


def _line(sentence: Sentence) -> str:
    when = f"{sentence.at:%Y-%m-%d %H:%M:%S} UTC" if sentence.at else "Now"
    return f"{when:<23}  {sentence}"


def _all(look: Callable[[], int]) -> int:
    """Look until there is nothing more to do, and return how much was done."""
    return sum(iter(look, 0))
