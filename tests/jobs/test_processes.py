"""The worker and the schedule as processes: they outlive Redis, and lose nothing when they are told to stop."""

import pytest
from sqlalchemy import func, update

from app.agent.steps import NOT_COVERED
from app.bootstrap import Container
from app.review.service import approve
from app.runs.lifecycle import latest_run
from app.runs.models import Run
from app.runs.recovery import UNCLAIMED_AFTER
from app.tickets.models import Ticket, TicketStatus
from jobs.worker import main
from tests.factories import MadeTicket, make_ticket
from tests.jobs.conftest import StartProcess
from tests.review.factories import DRAFT_TEXT, make_desk
from tests.support.own_valkey import OwnValkey
from tests.support.waiting import until


def status_of(parts: Container, made: MadeTicket) -> str:
    with parts.transaction() as session:
        run = latest_run(session, made.thread_id)
        assert run is not None
        return run.status


def test_a_worker_outlives_redis_that_is_away_at_the_start_and_later(
    parts: Container, own_valkey: OwnValkey, start_process: StartProcess
) -> None:
    worker = start_process("jobs.worker")
    worker.wait_until_ready()
    own_valkey.start()
    first = make_ticket(parts)
    # The knowledge base is empty, so the run goes to a person.
    until(lambda: status_of(parts, first) == "waiting_for_escalation", limit_s=30)
    with parts.transaction() as session:
        assert session.get_one(Ticket, first.ticket_id).escalation_reason == NOT_COVERED

    own_valkey.stop()
    own_valkey.start()
    second = make_ticket(parts, customer="C-2")
    until(lambda: status_of(parts, second) == "waiting_for_escalation", limit_s=30)
    assert worker.stop() == 0


def test_a_worker_that_is_told_to_stop_hands_its_run_back_and_the_next_one_takes_it(
    parts: Container, own_valkey: OwnValkey, start_process: StartProcess
) -> None:
    own_valkey.start()
    slow = start_process("jobs.worker", LLM_MODEL="stub;delay=60")
    slow.wait_until_ready()
    made = make_ticket(parts)
    until(lambda: status_of(parts, made) == "running", limit_s=30)
    assert slow.stop() == 0
    assert status_of(parts, made) == "retrying"

    start_process("jobs.worker").wait_until_ready()
    until(lambda: status_of(parts, made) == "waiting_for_escalation", limit_s=30)


def test_an_approved_reply_leaves_while_runs_keep_every_lane_busy(
    parts: Container, own_valkey: OwnValkey, start_process: StartProcess
) -> None:
    own_valkey.start()
    worker = start_process("jobs.worker", LLM_MODEL="stub;delay=60", WORKER_LANES="1")
    worker.wait_until_ready()
    busy, waiting = make_ticket(parts), make_ticket(parts, customer="C-2")
    until(lambda: "running" in (status_of(parts, busy), status_of(parts, waiting)), limit_s=30)
    desk = make_desk(parts)
    with parts.transaction() as session:
        text, key = DRAFT_TEXT, str(desk.run_id)
        approve(session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, text=text, seen=desk.seen, key=key)

    def resolved() -> bool:
        with parts.transaction() as session:
            return session.get_one(Ticket, desk.ticket_id).status == TicketStatus.RESOLVED

    until(resolved, limit_s=10)
    assert sorted((status_of(parts, busy), status_of(parts, waiting))) == ["created", "running"]


def test_the_schedule_starts_what_was_created_while_redis_was_away(
    parts: Container, own_valkey: OwnValkey, start_process: StartProcess
) -> None:
    made = make_ticket(parts)
    with parts.transaction() as session:
        session.execute(update(Run).values(created_at=func.now() - UNCLAIMED_AFTER))
    schedule = start_process("jobs.schedule")
    schedule.wait_until_ready()
    own_valkey.start()
    until(lambda: parts.redis.lrange("rq:queue:runs", 0, -1) == [str(made.run_id).encode()], limit_s=30)
    assert schedule.stop() == 0


def test_a_worker_refuses_a_queue_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="no such queue: rnus"):
        main(["rnus"])
