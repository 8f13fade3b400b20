"""The sweep: it decides once on each run whose worker died, says why, waits for nobody and touches no other run."""

import logging
import threading
import tracemalloc
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.ids import new_id
from app.runs import recovery
from app.runs.events import lock_thread
from app.runs.fate import SET_ASIDE, SET_ASIDE_CODE, WORKER_LOST
from app.runs.lifecycle import latest_run
from app.runs.models import Event, EventType, Run, RunOrigin, RunStatus, Step
from app.runs.recovery import PAGE, sweep
from app.tickets.models import Ticket
from tests.factories import MadeTicket, make_ticket
from tests.runs.looking import events_of, run_of, steps_of, ticket_of
from tests.runs.many import make_runs

RETRY, MARK_FAILED = True, False


def look(container: Container, *, retry: bool = MARK_FAILED, limit: int = 500) -> int:
    """Sweep as the schedule does, under this policy."""
    policy = replace(container.stale_policy, retry=retry)
    return sweep(container.transaction, policy, container.run_plan(), limit=limit)


def lost(container: Container, *, step: str | None = "draft_reply", deaths: int = 0) -> MadeTicket:
    """A run whose worker died in the middle of a step, or between two; so many had died of it before."""
    made = make_ticket(container, customer=f"C-{new_id()}", run_status=RunStatus.RUNNING)
    with container.transaction() as session:
        values = {"lease_until": func.now(), "deaths": deaths, "hint": "客气一点", "auto_retries": 1}
        session.execute(update(Run).where(Run.id == made.run_id).values(values))
        if step is not None:
            session.add(Step(run_id=made.run_id, number=1, action_type="tool_call", skill=step, input={}))
    return made


def newest(container: Container, made: MadeTicket) -> Run:
    with container.transaction() as session:
        run = latest_run(session, made.thread_id)
        assert run is not None
        return run


def test_nobody_is_taken_for_dead_while_postgresql_has_only_just_started(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lost(container)
    monkeypatch.setattr(recovery, "SETTLED_AFTER", timedelta(days=1))
    assert look(container) == 0
    assert run_of(container, made.run_id).status == RunStatus.RUNNING


def test_by_default_the_run_fails_with_a_reason_and_keeps_what_it_had(container: Container) -> None:
    made = lost(container)
    assert look(container) == 1
    run = run_of(container, made.run_id)
    assert (run.status, run.error_code, run.error_message) == (RunStatus.FAILED, "worker_lost", WORKER_LOST)
    assert (run.deaths, run.lease_until, run.ended_at is not None) == (1, None, True)
    assert steps_of(container, made.run_id)[0].ended_at is not None
    event = events_of(container, made.thread_id)[-1]
    assert (event.type, event.payload) == (
        EventType.RUN_FAILED,
        {"code": "worker_lost", "reason": "policy", "deaths": 1},
    )
    assert newest(container, made).id == made.run_id
    assert ticket_of(container, made.ticket_id).escalated_at is None
    assert look(container) == 0


@pytest.mark.parametrize("step", ["draft_reply", "plan", None])
def test_under_the_policy_retry_a_new_run_takes_over_in_the_same_transaction(
    container: Container, step: str | None
) -> None:
    made = lost(container, step=step, deaths=1)
    assert look(container, retry=RETRY) == 1
    old, new = run_of(container, made.run_id), newest(container, made)
    assert (old.status, old.error_code, old.deaths) == (RunStatus.FAILED, "worker_lost", 2)
    assert (new.status, new.origin, new.retry_from) == (RunStatus.CREATED, RunOrigin.WORKER_LOST, old.id)
    assert (new.deaths, new.auto_retries, new.hint) == (2, 1, "客气一点")
    *_, failed, made_new, retrying = events_of(container, made.thread_id)
    assert failed.payload == {"code": "worker_lost", "reason": "policy", "deaths": 2, "retry": True}
    assert (made_new.type, made_new.run_id) == (EventType.RUN_CREATED, new.id)
    assert (retrying.type, retrying.run_id) == (EventType.RUN_RETRYING, new.id)
    assert retrying.payload == {"from": str(old.id), "reason": "worker_lost", "attempt": 4}
    assert container.redis.lrange("rq:queue:runs", 0, -1)[-1] == str(new.id).encode()


def test_a_step_that_may_not_be_begun_twice_is_not_retried(container: Container) -> None:
    made = lost(container, step="send_money")
    assert look(container, retry=RETRY) == 1
    assert newest(container, made).id == made.run_id
    assert events_of(container, made.thread_id)[-1].payload["reason"] == "not_retry_safe"


def test_a_retry_says_that_the_customer_has_written_meanwhile(container: Container) -> None:
    made = lost(container)
    with container.transaction() as session:
        session.execute(update(Ticket).values(last_customer_message_id=new_id()))
    assert look(container, retry=RETRY) == 1
    assert newest(container, made).retry_from == made.run_id
    failed = events_of(container, made.thread_id)[-3]
    assert failed.payload == {"code": "worker_lost", "reason": "newer_message", "deaths": 1, "retry": True}


@pytest.mark.parametrize("retry", [RETRY, MARK_FAILED])
def test_after_enough_deaths_the_run_is_set_aside_and_its_ticket_goes_to_a_person(
    container: Container, retry: bool
) -> None:
    made = lost(container, deaths=container.settings.max_deaths - 1)
    version = ticket_of(container, made.ticket_id).version
    assert look(container, retry=retry) == 1
    run, ticket = newest(container, made), ticket_of(container, made.ticket_id)
    assert (run.id, run.status, run.error_code) == (made.run_id, RunStatus.FAILED, SET_ASIDE_CODE)
    assert (ticket.escalation_reason, ticket.version) == (SET_ASIDE, version + 1)
    assert ticket.escalated_at is not None
    payload = events_of(container, made.thread_id)[-1].payload
    assert payload == {"code": SET_ASIDE_CODE, "reason": "max_deaths", "deaths": 3}


@pytest.mark.parametrize("status", sorted(set(RunStatus) - {RunStatus.RUNNING}))
def test_no_run_is_touched_that_no_worker_has(container: Container, status: RunStatus) -> None:
    made = make_ticket(container, run_status=status)
    with container.transaction() as session:
        session.execute(update(Run).values(lease_until=func.now()))
    assert look(container, retry=RETRY) == 0
    assert run_of(container, made.run_id).status == status


def test_a_thread_that_somebody_holds_is_left_for_the_next_look(container: Container) -> None:
    held, free = lost(container), lost(container)
    with container.transaction() as session:
        lock_thread(session, held.ticket_id)
        assert look(container) == 1  # at once
        assert run_of(container, held.run_id).status == RunStatus.RUNNING
    assert run_of(container, free.run_id).status == RunStatus.FAILED
    assert look(container) == 1


def test_sweeps_at_the_same_time_have_one_effect(container: Container) -> None:
    count = 60
    make_runs(container, count)
    start, decided = threading.Barrier(3), [0, 0, 0]

    def work(place: int) -> None:
        start.wait()
        while some := look(container, retry=RETRY, limit=7):
            decided[place] += some

    sweepers = [threading.Thread(target=work, args=(place,)) for place in range(3)]
    for sweeper in sweepers:
        sweeper.start()
    for sweeper in sweepers:
        sweeper.join()
    assert look(container) == 0
    assert sum(decided) == count
    with container.transaction() as session:
        failed = session.scalars(select(Run.id).where(Run.status == RunStatus.FAILED)).all()
        followed = session.scalars(select(Run.retry_from).where(Run.status == RunStatus.CREATED)).all()
        ends = session.scalars(select(Event.run_id).where(Event.type == EventType.RUN_FAILED)).all()
    assert sorted(failed) == sorted(followed) == sorted(run_id for run_id in ends if run_id)
    assert len(failed) == count


def test_a_look_goes_past_what_it_may_not_touch_page_by_page(container: Container) -> None:
    make_runs(container, PAGE + 10)
    last = lost(container)  # the youngest
    with container.transaction() as session:
        session.execute(select(Run.id).where(Run.id != last.run_id).with_for_update())
        assert look(container) == 1
    assert run_of(container, last.run_id).status == RunStatus.FAILED


def test_thousands_of_lost_runs_take_the_memory_of_a_page(
    container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="app.runs.recovery")  # pytest keeps what is logged
    make_runs(container, 10_000)
    look(container, limit=20)  # what is loaded once
    tracemalloc.start()
    try:
        assert look(container, limit=40) == 40
        few = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert look(container, limit=160) == 160
        many = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert many < few + 300_000
