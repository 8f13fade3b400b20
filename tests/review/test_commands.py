"""Regenerate, escalate, cancel, write by hand: each moves one run, says who did it, and never passes a newer one."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import pytest
from rq import Queue
from sqlalchemy import select, update

from app.bootstrap import Container
from app.errors import InvalidInput, NotFound
from app.ids import new_id
from app.live.job_queue import RUNS
from app.live.publisher import stop_channel
from app.review import service
from app.runs.lifecycle import RunMoved
from app.runs.models import ACTIVE, Event, Run, RunStatus
from app.staff.models import AuditEntry
from app.tickets.composer import ComposerDraft
from app.tickets.lifecycle import TicketMoved
from app.tickets.models import Ticket
from tests.factories import make_staff
from tests.review.factories import DRAFT_TEXT, Desk, make_desk, see


def regenerate(container: Container, desk: Desk, hint: str = "", run_id: UUID | None = None) -> UUID:
    with container.transaction() as session:
        return service.regenerate(
            session,
            ticket_id=desk.ticket_id,
            staff_id=desk.staff_id,
            hint=hint,
            plan=container.run_plan(),
            run_id=run_id,
        )


def start_manual(container: Container, desk: Desk) -> UUID:
    with container.transaction() as session:
        return service.start_manual(
            session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, plan=container.run_plan()
        )


def escalate(container: Container, desk: Desk, reason: str = "需要法务确认") -> None:
    with container.transaction() as session:
        service.escalate(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason=reason)


def cancel(container: Container, desk: Desk, run_id: UUID | None = None) -> None:
    with container.transaction() as session:
        service.cancel_run(session, ticket_id=desk.ticket_id, run_id=run_id or desk.run_id, staff_id=desk.staff_id)


def approve(container: Container, desk: Desk, key: str = "form-1") -> None:
    with container.transaction() as session:
        service.approve(
            session,
            ticket_id=desk.ticket_id,
            staff_id=desk.staff_id,
            text=DRAFT_TEXT,
            seen=see(container, desk.ticket_id),
            key=key,
        )


def run_of(container: Container, run_id: UUID) -> Run:
    with container.transaction() as session:
        return session.get_one(Run, run_id)


def event_types(container: Container, run_id: UUID) -> list[str]:
    with container.transaction() as session:
        return list(session.scalars(select(Event.type).where(Event.run_id == run_id).order_by(Event.seq)))


def queued_runs(container: Container) -> list[str]:
    return [job.args[0] for job in Queue(RUNS, connection=container.redis).jobs]


@pytest.mark.parametrize("status", ACTIVE)
def test_regenerate_supersedes_an_active_run(container: Container, status: RunStatus) -> None:
    desk = make_desk(container, status=status)
    new_run = run_of(container, regenerate(container, desk, "  请更简短  "))
    assert (new_run.status, new_run.retry_from, new_run.hint) == ("created", desk.run_id, "请更简短")
    old = run_of(container, desk.run_id)
    assert (old.status, old.moved_by) == ("superseded", desk.staff_id)
    assert event_types(container, desk.run_id)[-1] == "run_superseded"
    assert str(new_run.id) in queued_runs(container)
    with container.transaction() as session:
        assert session.scalars(select(AuditEntry.action)).all() == ["draft_regenerated"]


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED])
def test_regenerate_retries_a_run_that_ended(container: Container, status: RunStatus) -> None:
    desk = make_desk(container, status=status)
    new_run = run_of(container, regenerate(container, desk))
    assert (new_run.retry_from, new_run.hint) == (desk.run_id, None)
    assert run_of(container, desk.run_id).status == status


def test_regenerate_leaves_a_newer_run_alone(container: Container) -> None:
    desk = make_desk(container)
    first = regenerate(container, desk, run_id=desk.run_id)
    with pytest.raises(RunMoved) as refused:
        regenerate(container, desk, run_id=desk.run_id)
    assert (refused.value.run_status, refused.value.by) == ("superseded", desk.staff_id)
    assert run_of(container, first).status == "created"


def test_two_people_regenerate_at_once(container: Container) -> None:
    desk = make_desk(container)
    start = Barrier(2)

    def click() -> UUID:
        start.wait(timeout=10)
        return regenerate(container, desk, run_id=desk.run_id)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(click) for _ in range(2)]
    errors = [future.exception() for future in futures]
    assert sorted(isinstance(error, RunMoved) for error in errors) == [False, True]


@pytest.mark.parametrize("hint", ["长" * 501, "a\x00b"])
def test_hints_that_are_refused(container: Container, hint: str) -> None:
    desk = make_desk(container)
    with pytest.raises(InvalidInput) as refused:
        regenerate(container, desk, hint)
    assert refused.value.field == "hint"


def test_nothing_starts_while_a_reply_is_on_its_way(container: Container) -> None:
    desk = make_desk(container)
    approve(container, desk)
    for start in (regenerate, start_manual):
        with pytest.raises(RunMoved) as refused:
            start(container, desk)
        assert (refused.value.run_id, refused.value.run_status) == (desk.run_id, "completed")
        assert refused.value.by == desk.staff_id


def test_nothing_starts_on_a_ticket_that_is_done(container: Container) -> None:
    desk = make_desk(container, status=RunStatus.COMPLETED)
    with container.transaction() as session:
        session.execute(update(Ticket).values(status="resolved", moved_by=desk.staff_id))
    for start in (regenerate, start_manual):
        with pytest.raises(TicketMoved) as refused:
            start(container, desk)
        assert (refused.value.ticket_status, refused.value.by) == ("resolved", desk.staff_id)


def test_a_manual_reply_goes_the_same_way(container: Container) -> None:
    desk = make_desk(container, status=RunStatus.FAILED, draft=False)
    run_id = start_manual(container, desk)
    run = run_of(container, run_id)
    assert (run.status, run.planner, run.retry_from) == ("waiting_for_review", "manual", desk.run_id)
    assert str(run_id) not in queued_runs(container)
    assert start_manual(container, desk) == run_id
    approve(container, desk)
    assert event_types(container, run_id) == ["run_created", "reply_approved", "run_completed"]


def test_a_manual_reply_stops_the_agent(container: Container) -> None:
    desk = make_desk(container, status=RunStatus.RUNNING)
    with container.redis.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(stop_channel(desk.run_id))
        assert channel.get_message(timeout=5) is None
        start_manual(container, desk)
        assert channel.get_message(timeout=5) is not None
    assert run_of(container, desk.run_id).status == "superseded"


def test_escalate(container: Container) -> None:
    desk = make_desk(container)
    escalate(container, desk, " 需要法务确认 ")
    assert run_of(container, desk.run_id).status == "waiting_for_escalation"
    assert event_types(container, desk.run_id)[-1] == "run_escalated"
    with container.transaction() as session:
        ticket = session.get_one(Ticket, desk.ticket_id)
        assert ticket.escalation_reason == "需要法务确认"
        assert ticket.escalated_at is not None
        assert ticket.version == 2
    with pytest.raises(RunMoved) as refused:
        escalate(container, desk)
    assert refused.value.by == desk.staff_id
    approve(container, desk)
    assert run_of(container, desk.run_id).status == "completed"


@pytest.mark.parametrize("reason", ["", "长" * 501])
def test_an_escalation_needs_a_reason(container: Container, reason: str) -> None:
    desk = make_desk(container)
    with pytest.raises(InvalidInput) as refused:
        escalate(container, desk, reason)
    assert refused.value.field == "reason"


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.COMPLETED, RunStatus.CANCELLED])
def test_only_a_run_that_waits_for_review_escalates(container: Container, status: RunStatus) -> None:
    desk = make_desk(container, status=status)
    with pytest.raises(RunMoved):
        escalate(container, desk)


@pytest.mark.parametrize("status", ACTIVE)
def test_cancel(container: Container, status: RunStatus) -> None:
    desk = make_desk(container, status=status)
    cancel(container, desk)
    run = run_of(container, desk.run_id)
    assert (run.status, run.moved_by) == ("cancelled", desk.staff_id)
    assert event_types(container, desk.run_id)[-1] == "run_cancelled"
    with pytest.raises(RunMoved):
        cancel(container, desk)


def test_runs_and_tickets_that_do_not_exist(container: Container) -> None:
    desk = make_desk(container)
    with pytest.raises(NotFound):
        cancel(container, desk, run_id=make_desk(container).run_id)
    with container.transaction() as session, pytest.raises(NotFound):
        service.regenerate(session, ticket_id=new_id(), staff_id=desk.staff_id, hint="", plan=container.run_plan())


def save(container: Container, desk: Desk, body: str, staff_id: UUID | None = None) -> None:
    with container.transaction() as session:
        service.save_composer(session, ticket_id=desk.ticket_id, staff_id=staff_id or desk.staff_id, body=body)


def text_of(container: Container, desk: Desk, staff_id: UUID | None = None) -> str | None:
    with container.transaction() as session:
        kept = session.get(ComposerDraft, (desk.ticket_id, staff_id or desk.staff_id))
        return kept.body if kept else None


def test_typed_text_is_kept_per_person(container: Container) -> None:
    desk = make_desk(container)
    colleague = make_staff(container, "lead")
    save(container, desk, "写了一半")
    save(container, desk, "写了一大半 ")
    assert text_of(container, desk) == "写了一大半 "
    assert text_of(container, desk, colleague) is None
    save(container, desk, "")
    assert text_of(container, desk) is None


def test_approving_clears_the_composer_and_late_saves_stay_away(container: Container) -> None:
    desk = make_desk(container)
    save(container, desk, "写了一半")
    approve(container, desk)
    save(container, desk, "写了一半，晚到的保存")
    with container.transaction() as session:
        assert session.scalars(select(ComposerDraft)).all() == []


@pytest.mark.parametrize("end", ["approved by a colleague", "cancelled"])
def test_what_is_typed_after_the_run_has_ended_is_kept(container: Container, end: str) -> None:
    desk = make_desk(container)
    colleague = make_staff(container, "lead")
    if end == "cancelled":
        cancel(container, desk)
        colleague = desk.staff_id
    else:
        approve(container, desk)
    save(container, desk, "写了一半", colleague)
    assert text_of(container, desk, colleague) == "写了一半"


@pytest.mark.parametrize("body", ["字" * 10_001, "a\x00b"])
def test_typed_text_that_is_refused(container: Container, body: str) -> None:
    with pytest.raises(InvalidInput):
        save(container, make_desk(container), body)
