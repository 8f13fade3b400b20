"""The story of a run in sentences: each is true of what happened, and of what will happen next."""

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import func, update

from app.bootstrap import Container
from app.errors import NotFound
from app.ids import new_id
from app.review.service import approve, cancel_run, escalate, regenerate, start_manual
from app.runs.admin import take_out
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.explain import explain
from app.runs.lifecycle import latest_run
from app.runs.models import EventType, Run, RunStatus
from app.runs.recovery import retry_due, sweep
from app.tickets.models import Ticket, TicketStatus
from tests.agent.parts import FixedDrafter
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.review.factories import DRAFT_TEXT, make_desk, see
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.support.waiting import until

LAST_WORKER = "The last worker that had it was"


def told(container: Container, run_id: UUID) -> list[str]:
    """What is said of a run, as the command prints it; without the worker's name, which is the machine's."""
    with container.sessions() as session:
        sentences = explain(session, run_id)
    times = [sentence.at for sentence in sentences if sentence.at is not None]
    assert times == sorted(times)
    assert all(sentence.at is None for sentence in sentences[len(times) :]), "what is to come stands last"
    return [str(sentence) for sentence in sentences if not str(sentence).startswith((LAST_WORKER, "Worker "))]


def newest(container: Container, made: MadeTicket) -> UUID:
    with container.sessions() as session:
        run = latest_run(session, made.thread_id)
        assert run is not None
        return run.id


def test_a_run_from_its_ticket_to_the_reply(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime().execute(made.run_id)
    past = [
        "It was made because a ticket came in.",
        "A worker took it, to go by rules, without a model.",
        "Step 1, classify_ticket, was done.",
        "Step 2, search_knowledge, was done.",
        "Step 3, draft_reply, was done.",
        "Its draft was ready.",
    ]
    assert told(container, made.run_id) == [*past, "It waits for a person to review the draft."]

    staff_id, seen = make_staff(container), see(container, made.ticket_id)
    with container.transaction() as session:
        approve(session, ticket_id=made.ticket_id, staff_id=staff_id, text=DRAFT_TEXT, seen=seen, key="k")
    assert told(container, made.run_id) == [*past, "agent approved the reply.", "The reply leaves by itself."]


def test_a_run_that_is_under_way_and_its_hand_over(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    drafter = FixedDrafter(gate=asyncio.Event())
    runtime = start_runtime(make_agent(drafter=drafter))
    run = InBackground(runtime, made.run_id)
    until(drafter.started.is_set)
    *_, step, lease = told(container, made.run_id)
    assert step == "Step 3, draft_reply, was begun."
    assert re.fullmatch(r"Its lease ends in \d+ s unless it is renewed; then the run fails or .*", lease)

    runtime.stop()
    run.wait()
    assert told(container, made.run_id)[-3:] == [
        "Step 3, draft_reply, was begun and cut off.",
        "Its worker was told to stop and handed it back for another one to go on with.",
        "The next free worker takes it. If its place in the queue is lost, it gets another within seconds.",
    ]


@pytest.mark.parametrize(
    ("policy", "deaths", "decided", "next_"),
    [
        (
            "mark_failed",
            0,
            "It is left to a person to retry it, as the settings say.",
            "Nothing happens by itself: a person can retry it or write the reply.",
        ),
        (
            "retry",
            2,
            "Its workers had died 3 times, so it went to a person.",
            "Nothing happens by itself: a person can retry it or write the reply.",
        ),
        (
            "retry",
            0,
            "A new run was made to go on with its work, as the settings say.",
            "Nothing more happens to it: run .* has taken over.",
        ),
    ],
)
def test_a_run_whose_worker_died(container: Container, policy: str, deaths: int, decided: str, next_: str) -> None:
    made = make_ticket(container, run_status=RunStatus.RUNNING)
    for lost_s, follows in (
        (5, ": within seconds the run fails or is retried by itself."),
        (120, ", and nobody has seen to it: is the schedule process running?"),
    ):
        with container.transaction() as session:
            session.execute(update(Run).values(lease_until=func.now() - timedelta(seconds=lost_s), deaths=deaths))
        now = told(container, made.run_id)[-1]
        assert now.startswith("Its lease ended ")
        assert now.endswith(follows)
    sweep(container.transaction, replace(container.stale_policy, retry=policy == "retry"), container.run_plan())
    *_, told_decided, told_next = told(container, made.run_id)
    assert told_decided == decided
    assert re.fullmatch(next_, told_next)


def test_a_run_that_took_too_long_and_the_one_that_follows(container: Container) -> None:
    made = make_ticket(container, run_status=RunStatus.FAILED)
    with container.transaction() as session:
        session.execute(update(Run).values(retry_at=func.now()))
    assert told(container, made.run_id)[-1] == "It will be retried by itself within a second."
    with container.transaction() as session:
        session.execute(update(Run).values(retry_at=func.now() - timedelta(minutes=1)))
    asked = r"It was to be retried by itself \d\d s ago: is the schedule process running\?"
    assert re.fullmatch(asked, told(container, made.run_id)[-1])
    retry_due(container.transaction, container.run_plan())
    following = newest(container, made)
    assert told(container, made.run_id)[-1] == f"Nothing more happens to it: run {following} has taken over."
    assert told(container, following) == [
        "It was made by itself because the run before it took too long.",
        f"The run before it is {made.run_id}.",
        "It is attempt number 2.",
        "The next free worker takes it. If its place in the queue is lost, it gets another within seconds.",
    ]


def test_a_run_that_waits_for_further_messages(container: Container) -> None:
    made = make_ticket(container)
    with container.transaction() as session:
        session.execute(update(Run).values(not_before=func.now() + timedelta(hours=1)))
    *_, was, waits = told(container, made.run_id)
    assert was == "No worker was to take it for 3600 s, so that further messages could join."
    assert re.fullmatch(r"It waits 3\d\d\d s more for further messages; then a worker takes it.", waits)


def test_a_run_that_waits_for_a_worker_for_long(container: Container) -> None:
    made = make_ticket(container)
    with container.transaction() as session:
        session.execute(update(Run).values(created_at=func.now() - timedelta(hours=1)))
    words = r"It has waited for a worker for 3\d\d\d s: are all busy, or does the schedule process not run\?"
    assert re.fullmatch(words, told(container, made.run_id)[-1])


def test_each_run_counts_its_steps_from_one(container: Container) -> None:
    made = make_ticket(container, run_status=RunStatus.RUNNING)
    begun = {"step": 1, "skill": "draft_reply", "resumed": {"from_step": 2}}
    events = [NewEvent(EventType.STEP_STARTED, made.run_id, begun)]
    done = {"step": 1, "skill": "draft_reply", "facts": {}}
    events.append(NewEvent(EventType.STEP_COMPLETED, made.run_id, done))
    again = {"step": 2, "skill": "draft_reply", "resumed": {"from_step": 1}}
    events.append(NewEvent(EventType.STEP_STARTED, made.run_id, again))
    with container.transaction() as session:
        append_events(session, lock_thread(session, made.ticket_id), events)
    story = told(container, made.run_id)
    assert "It went on after step 2 of the run before it, which was finished." in story
    assert "It went on after its step 1, which was finished." in story


def test_what_people_do_is_told_with_their_names(container: Container) -> None:
    desk = make_desk(container)
    who = {"ticket_id": desk.ticket_id, "staff_id": desk.staff_id}
    with container.transaction() as session:
        escalate(session, **who, run_id=desk.run_id, reason="不确定")
    assert told(container, desk.run_id)[-2:] == [
        "agent handed it to somebody who knows more.",
        "It waits for a person to take the ticket over.",
    ]
    with container.transaction() as session:
        second = regenerate(session, **who, hint="", plan=container.run_plan())
    assert "agent asked for another draft, so a new run took its place." in told(container, desk.run_id)
    with container.transaction() as session:
        take_out(session, **who, run_id=second)
    assert told(container, second)[-5:] == [
        "It failed, because:",
        "This run was set aside by hand.",
        "Its error code is set_aside.",
        "agent set it aside.",
        "Nothing happens by itself: a person can retry it or write the reply.",
    ]
    with container.transaction() as session:
        third = start_manual(session, **who, plan=container.run_plan())
    assert told(container, third)[-1] == "It waits for a person to write the reply."
    with container.transaction() as session:
        cancel_run(session, **who, run_id=third)
        session.get_one(Ticket, desk.ticket_id).status = TicketStatus.RESOLVED
    assert told(container, third)[-2:] == ["agent stopped it.", "Nothing more happens to it: its ticket is done."]


def test_an_unknown_run(container: Container) -> None:
    with container.sessions() as session, pytest.raises(NotFound):
        explain(session, new_id())
