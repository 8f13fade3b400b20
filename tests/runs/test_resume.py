"""A run that follows another: what is carried over, and what is done again."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.orm.attributes import flag_modified

from app.agent.ports import NO_MODEL, ModelUnavailable, Plan, SkillOffer
from app.agent.rule_planner import RulePlanner
from app.agent.skill import CallLog
from app.agent.values import CHECKPOINT_SCHEMA, Observation, Sufficiency
from app.bootstrap import Container
from app.ids import new_id
from app.review.service import regenerate
from app.runs.events import lock_thread
from app.runs.lifecycle import create_run, latest_run
from app.runs.models import Checkpoint, Run, RunOrigin
from app.settings import Settings
from app.tickets.models import Ticket, TicketMessage
from tests.agent.parts import FixedClassifier, FixedDrafter, FixedRetriever, ScriptedPlanner, call
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import checkpoints_of, events_of, run_of, steps_of
from tests.runs.ports import AbsentDrafter
from tests.support.waiting import until


def again(container: Container, made: MadeTicket, hint: str = "短一点") -> UUID:
    """Regenerate as the page does."""
    staff_id = make_staff(container)
    with container.transaction() as session:
        return regenerate(session, ticket_id=made.ticket_id, staff_id=staff_id, hint=hint, plan=container.run_plan())


def retry(container: Container, made: MadeTicket) -> UUID:
    """Retry the newest run, which has failed, as the sweep does."""
    with container.transaction() as session:
        thread = lock_thread(session, made.ticket_id)
        failed = latest_run(session, made.thread_id)
        assert failed is not None
        assert failed.status == "failed"
        plan = replace(container.run_plan(), origin=RunOrigin.RETRY, retry_from=failed.id)
        return create_run(session, thread, session.get_one(Ticket, made.ticket_id), plan).id


def started(container: Container, made: MadeTicket, run_id: UUID) -> list[dict[str, object]]:
    """What the events tell of the starts of a run's steps."""
    events = events_of(container, made.thread_id)
    return [event.payload for event in events if event.run_id == run_id and event.type == "step_started"]


def rows_of(container: Container, run_id: UUID) -> list[dict[str, object]]:
    """All that a run is and has left, as values."""
    rows = [run_of(container, run_id), *steps_of(container, run_id), *checkpoints_of(container, run_id)]
    return [{key: value for key, value in vars(row).items() if not key.startswith("_")} for row in rows]


class SeeingPlanner(RulePlanner):
    """Goes by rules and keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []

    async def plan(self, observation: Observation, offers: Sequence[SkillOffer], calls: CallLog) -> Plan:
        self.seen.append(observation)
        return await super().plan(observation, offers, calls)


def skills_of(container: Container, run_id: UUID) -> list[str]:
    return [step.skill for step in steps_of(container, run_id)]


def test_regenerate_writes_the_draft_again_and_nothing_else(container: Container, start_runtime: StartRuntime) -> None:
    made, drafter = make_ticket(container), FixedDrafter()
    runtime = start_runtime(make_agent(drafter=drafter))
    runtime.execute(made.run_id)
    second = again(container, made)
    runtime.execute(second)
    third = again(container, made, "再短一点")
    runtime.execute(third)
    assert skills_of(container, second) == skills_of(container, third) == ["draft_reply"]
    assert drafter.hints == [None, "短一点", "再短一点"]
    assert run_of(container, made.run_id).status == run_of(container, second).status == "superseded"
    assert run_of(container, third).status == "waiting_for_review"


def test_a_search_that_did_not_suffice_is_made_again(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(retriever=FixedRetriever([Sufficiency.INSUFFICIENT]))).execute(made.run_id)
    second = again(container, made)
    start_runtime().execute(second)
    assert skills_of(container, second) == ["search_knowledge", "draft_reply"]


def change_message(container: Container) -> None:
    with container.transaction() as session:
        session.execute(update(TicketMessage).values(body="其实我想问发票。"))


def write_again(container: Container) -> None:
    """A further message, in the same words: it is the message that counts, not what it says."""
    with container.transaction() as session:
        ticket = session.scalars(select(Ticket)).one()
        first = session.scalars(select(TicketMessage.body)).one()
        message = TicketMessage(id=new_id(), ticket_id=ticket.id, number=3, kind="customer", body=first)
        reply = TicketMessage(id=new_id(), ticket_id=ticket.id, number=2, kind="reply", body="好的")
        session.add_all([reply, message])
        session.flush()
        ticket.last_customer_message_id = message.id


def give_version(version: int) -> Callable[[Container], None]:
    def change(container: Container) -> None:
        with container.transaction() as session:
            session.execute(update(Checkpoint).values(schema_version=version))

    return change


def spoil_checkpoints(container: Container) -> None:
    with container.transaction() as session:
        session.execute(update(Checkpoint).values(observation={"ticket": "?"}))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (change_message, "newer_message"),
        (write_again, "newer_message"),
        (give_version(0), "checkpoint_unreadable"),
        (give_version(CHECKPOINT_SCHEMA + 1), "checkpoint_unreadable"),
        (spoil_checkpoints, "checkpoint_unreadable"),
    ],
)
@pytest.mark.parametrize("follow", [again, retry])
def test_what_no_longer_fits_is_not_carried_over_and_the_first_step_says_why(
    container: Container,
    start_runtime: StartRuntime,
    change: Callable[[Container], None],
    why: str,
    follow: Callable[[Container, MadeTicket], UUID],
) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(drafter=AbsentDrafter() if follow is retry else None)).execute(made.run_id)
    change(container)
    second = follow(container, made)
    planner = SeeingPlanner()
    start_runtime(make_agent(planner=planner)).execute(second)
    assert skills_of(container, second) == ["classify_ticket", "search_knowledge", "draft_reply"]
    first, *later = started(container, made, second)
    assert first == {"step": 1, "skill": "classify_ticket", "fresh": why}
    assert all("fresh" not in payload for payload in later)
    told = planner.seen[0].earlier_failure
    assert told == (NO_MODEL if follow is retry and why == "checkpoint_unreadable" else None)


def test_a_retry_skips_what_is_done_and_is_told_why_the_last_attempt_failed(
    container: Container, start_runtime: StartRuntime
) -> None:
    made, retriever, planner = make_ticket(container), FixedRetriever(), SeeingPlanner()
    start_runtime(make_agent(drafter=AbsentDrafter())).execute(made.run_id)
    before = rows_of(container, made.run_id)
    second = retry(container, made)
    start_runtime(make_agent(retriever=retriever, planner=planner)).execute(second)

    assert skills_of(container, second) == ["draft_reply"]
    assert retriever.queries == []
    assert run_of(container, second).status == "waiting_for_review"
    assert started(container, made, second) == [{"step": 1, "skill": "draft_reply", "resumed": {"from_step": 2}}]
    assert planner.seen[0].earlier_failure == NO_MODEL
    assert [turn.skill for turn in planner.seen[0].turns] == ["classify_ticket", "search_knowledge"]
    assert rows_of(container, made.run_id) == before


def test_the_reason_of_an_earlier_failure_has_its_places_filled(
    container: Container, settings: Settings, start_runtime: StartRuntime
) -> None:
    made, planner = make_ticket(container), SeeingPlanner()
    limited = settings.model_copy(update={"skill_timeout_s": 0.2})
    hanging = make_agent(drafter=FixedDrafter(gate=asyncio.Event()))
    start_runtime(hanging, settings=limited).execute(made.run_id)
    start_runtime(make_agent(planner=planner)).execute(retry(container, made))
    assert planner.seen[0].earlier_failure == "A step took too long: draft_reply was given 0.2 seconds."


def test_a_retry_keeps_a_search_that_did_not_suffice_and_its_count(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    first = FixedRetriever([Sufficiency.INSUFFICIENT])
    breaks_off = ScriptedPlanner([call("classify_ticket"), call("search_knowledge"), ModelUnavailable()])
    start_runtime(make_agent(retriever=first, planner=breaks_off)).execute(made.run_id)
    second, again = FixedRetriever([Sufficiency.INSUFFICIENT]), retry(container, made)
    start_runtime(make_agent(retriever=second)).execute(again)
    assert (len(first.queries), len(second.queries)) == (1, 1)
    assert first.queries != second.queries
    assert run_of(container, again).status == "waiting_for_escalation"


def test_a_retry_forgets_the_last_steps_that_failed_and_has_all_of_its_steps(
    container: Container, start_runtime: StartRuntime
) -> None:
    made, planner = make_ticket(container), SeeingPlanner()
    wrong = call("no_such_skill")
    lost = ScriptedPlanner([wrong, call("classify_ticket"), wrong, wrong, wrong])
    start_runtime(make_agent(planner=lost)).execute(made.run_id)
    assert run_of(container, made.run_id).error_code == "step_limit"
    second = retry(container, made)
    start_runtime(make_agent(planner=planner)).execute(second)
    assert [turn.skill for turn in planner.seen[0].turns] == ["no_such_skill", "classify_ticket"]
    assert skills_of(container, second) == ["search_knowledge", "draft_reply"]
    assert started(container, made, second)[0]["resumed"] == {"from_step": 2}


def test_a_retry_of_a_retry_that_got_nowhere_goes_on_from_the_run_before(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    absent = start_runtime(make_agent(drafter=AbsentDrafter()))
    absent.execute(made.run_id)
    second = retry(container, made)
    absent.execute(second)
    third = retry(container, made)
    start_runtime().execute(third)
    assert skills_of(container, second) == skills_of(container, third) == ["draft_reply"]
    assert started(container, made, third)[0]["resumed"] == {"from_step": 2}


def test_a_checkpoint_of_the_first_version_is_read(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(drafter=AbsentDrafter(), classifier=FixedClassifier(failures=1))).execute(made.run_id)
    with container.transaction() as session:
        for checkpoint in session.scalars(select(Checkpoint)):
            old = {key: value for key, value in checkpoint.observation.items() if key != "earlier_failure"}
            for turn in old["turns"]:
                del turn["error"]
            checkpoint.observation, checkpoint.schema_version = old, 1
            flag_modified(checkpoint, "observation")
    second = retry(container, made)
    start_runtime().execute(second)
    assert skills_of(container, second) == ["draft_reply"]


def test_a_run_that_was_handed_over_says_from_which_step_it_goes_on(
    container: Container, start_runtime: StartRuntime
) -> None:
    made, drafter = make_ticket(container), FixedDrafter(gate=asyncio.Event())
    first = start_runtime(make_agent(drafter=drafter))
    run = InBackground(first, made.run_id)
    until(drafter.started.is_set)
    first.stop()
    run.wait()
    start_runtime().execute(made.run_id)
    moved = [row.payload for row in events_of(container, made.thread_id) if row.type == "run_retrying"]
    assert moved == [{"reason": "worker_stopped"}]
    assert started(container, made, made.run_id)[-1]["resumed"] == {"from_step": 2}


@pytest.mark.parametrize(
    ("messages", "content"),
    [
        ([("customer", "一"), ("customer", "二")], "一\n\n二"),
        ([("customer", "一"), ("reply", "答"), ("customer", "二"), ("customer", "三")], "二\n\n三"),
        ([("customer", "一"), ("reply", "答"), ("note", "内部")], "一"),
    ],
)
def test_a_run_answers_what_the_customer_wrote_since_the_last_reply(
    container: Container, start_runtime: StartRuntime, messages: list[tuple[str, str]], content: str
) -> None:
    made, planner = make_ticket(container), SeeingPlanner()
    with container.transaction() as session:
        session.execute(update(Ticket).values(last_customer_message_id=None))
        session.execute(update(Run).values(last_customer_message_id=None))
        session.execute(delete(TicketMessage))
        for number, (kind, body) in enumerate(messages, start=1):
            session.add(TicketMessage(id=new_id(), ticket_id=made.ticket_id, number=number, kind=kind, body=body))
    start_runtime(make_agent(planner=planner)).execute(made.run_id)
    assert planner.seen[0].ticket.content == content
