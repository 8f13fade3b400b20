"""`flask runs`: the schedule's looks by hand, a retry by the server's operator, and a run's story."""

import re

import pytest
from flask import Flask
from rq import Queue
from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.ids import new_id
from app.live.job_queue import RUNS
from app.review.ticket_state import set_ticket_status
from app.runs.lifecycle import latest_run
from app.runs.models import EventType, Run, RunStatus
from app.runs.recovery import UNCLAIMED_AFTER
from app.staff.models import AuditEntry
from app.tickets.models import TicketStatus
from tests.cli.test_commands import flask
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.looking import events_of, run_of


def expired(container: Container) -> MadeTicket:
    """A run whose worker died."""
    made = make_ticket(container, run_status=RunStatus.RUNNING)
    with container.transaction() as session:
        session.execute(update(Run).values(lease_until=func.now(), lease_owner="host-1:7:a:b"))
    return made


def newest(container: Container, made: MadeTicket) -> Run:
    with container.transaction() as session:
        run = latest_run(session, made.thread_id)
        assert run is not None
        return run


def test_a_sweep_does_all_that_is_to_be_done(app: Flask, container: Container) -> None:
    dead = expired(container)
    due, lost = make_ticket(container), make_ticket(container)
    with container.transaction() as session:
        failed = update(Run).where(Run.id == due.run_id)
        session.execute(failed.values(status=RunStatus.FAILED, retry_at=func.now()))
        session.execute(update(Run).where(Run.id == lost.run_id).values(created_at=func.now() - UNCLAIMED_AFTER))
    container.redis.flushall()

    done = flask(app, "runs", "sweep")

    assert (done.exit_code, done.output.splitlines()) == (
        0,
        [
            "Ended because their worker had died: 1. Retried because they were due: 1.",
            "Put into the queue again: 1.",
        ],
    )
    with container.transaction() as session:
        entry = session.scalars(select(AuditEntry)).one()
        swept = {"command": "flask runs sweep", "ended": 1, "retried": 1}
        assert (entry.action, entry.staff_id, entry.detail) == ("runs_swept", None, swept)
    assert run_of(container, dead.run_id).status == RunStatus.FAILED
    retried = newest(container, due)
    assert retried.retry_from == due.run_id
    waiting = Queue(RUNS, connection=container.redis).get_job_ids()
    assert sorted(waiting) == sorted([str(retried.id), str(lost.run_id)])


def test_a_retry_makes_a_run_that_goes_on_from_the_old_one_and_names_the_command(
    app: Flask, container: Container
) -> None:
    made = make_ticket(container, run_status=RunStatus.FAILED)
    done = flask(app, "runs", "retry", str(made.run_id))
    run = newest(container, made)
    planned = "By the settings of this shell it is planned by rules, without a model."
    assert (done.exit_code, done.output.strip()) == (0, f"Run {run.id} goes on from {made.run_id}. {planned}")
    assert (run.status, run.retry_from, run.origin) == (RunStatus.CREATED, made.run_id, "retry")
    with container.transaction() as session:
        entry = session.scalars(select(AuditEntry)).one()
        assert (entry.action, entry.staff_id, entry.detail["command"]) == (
            "draft_regenerated",
            None,
            "flask runs retry",
        )

    again = flask(app, "runs", "retry", str(made.run_id))
    assert again.exit_code == 1
    words = r"flask runs retry started over at [-\d]{10} [\d:]{8} UTC, so this draft is out of date\."
    followed = rf"Error: A newer run has followed it: {run.id}\. "
    assert re.fullmatch(followed + words, again.output.strip())
    assert newest(container, made).id == run.id


def test_a_retry_of_a_ticket_that_is_done_says_who_ended_it_and_when(app: Flask, container: Container) -> None:
    made = make_ticket(container, run_status=RunStatus.FAILED)
    with container.transaction() as session:
        target, staff_id = TicketStatus.SPAM, make_staff(container, "ann")
        set_ticket_status(session, ticket_id=made.ticket_id, target=target, staff_id=staff_id)
    refused = flask(app, "runs", "retry", str(made.run_id))
    assert refused.exit_code == 1
    assert re.fullmatch(r"Error: ann marked this ticket as spam at [-\d]+ [\d:]+ UTC\.", refused.output.strip())


def test_a_retry_of_an_active_run_takes_its_place_and_its_event_names_the_command(
    app: Flask, container: Container
) -> None:
    made = make_ticket(container, run_status=RunStatus.WAITING_FOR_REVIEW)
    assert flask(app, "runs", "retry", str(made.run_id)).exit_code == 0
    assert run_of(container, made.run_id).status == RunStatus.SUPERSEDED
    (event,) = [event for event in events_of(container, made.thread_id) if event.type == EventType.RUN_SUPERSEDED]
    assert event.payload == {"reason": "regenerated", "command": "flask runs retry"}
    told = flask(app, "runs", "explain", str(made.run_id)).output
    assert "flask runs retry asked for another draft, so a new run took its place." in told


def test_an_explanation_has_the_times_of_what_happened_and_then_what_is_now(app: Flask, container: Container) -> None:
    made = expired(container)
    flask(app, "runs", "sweep")
    told = flask(app, "runs", "explain", str(made.run_id))
    assert told.exit_code == 0
    lines = told.output.splitlines()
    assert [line[25:] for line in lines] == [
        "It was made because a ticket came in.",
        "It failed, because:",
        "The process that worked on this run no longer answers.",
        "Its error code is worker_lost.",
        "It is left to a person to retry it, as the settings say.",
        "The last worker that had it was host-1:7.",
        "Nothing happens by itself: a person can retry it or write the reply.",
    ]
    assert lines[0][19:25] == " UTC  "
    assert [line[:25].strip() for line in lines[-2:]] == ["Now", "Now"]


def test_a_ticket_stands_for_its_newest_run(app: Flask, container: Container) -> None:
    made = make_ticket(container, run_status=RunStatus.FAILED)
    assert flask(app, "runs", "retry", str(made.number)).exit_code == 0
    assert newest(container, made).retry_from == made.run_id
    told = flask(app, "runs", "explain", f"#{made.number}")
    assert (told.exit_code, "It was made because the run before it was retried." in told.output) == (0, True)


@pytest.mark.parametrize("command", ["retry", "explain"])
def test_runs_that_there_are_not(app: Flask, command: str) -> None:
    assert flask(app, "runs", command, "run-17").exit_code == 2
    no_ticket = flask(app, "runs", command, "17")
    assert (no_ticket.exit_code, no_ticket.output.strip()) == (1, "Error: There is no such ticket.")
    gone = flask(app, "runs", command, str(new_id()))
    assert (gone.exit_code, gone.output.strip()) == (1, "Error: There is no such run.")
