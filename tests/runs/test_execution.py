"""A whole run, row by row."""

from html import unescape

import orjson
import pytest
from sqlalchemy import update

from app.agent.ports import NO_MODEL
from app.agent.values import Observation, Sufficiency
from app.bootstrap import Container
from app.llm import failures
from app.llm.client import ChatClient
from app.llm.planner import ModelPlanner
from app.runs.executor import UNEXPECTED
from app.runs.models import Run
from app.settings import Settings
from app.tickets.models import Ticket
from tests.agent.parts import FixedClassifier, FixedRetriever, ScriptedPlanner, call
from tests.conftest import Login
from tests.factories import make_ticket
from tests.runs.conftest import StartRuntime, make_agent
from tests.runs.looking import (
    artifacts_of,
    calls_of,
    checkpoints_of,
    events_of,
    run_of,
    steps_of,
    stream_of,
    thread_of,
    ticket_of,
)
from tests.runs.ports import AbsentModel, BrokenRetriever, NulDrafter
from tests.support.model_server import ModelServer
from tests.support.waiting import until

STEPS = ["classify_ticket", "search_knowledge", "draft_reply"]


def test_a_run_leaves_every_row_that_the_page_needs(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime().execute(made.run_id)

    run = run_of(container, made.run_id)
    assert (run.status, run.cur_step, run.fence) == ("waiting_for_review", 3, 1)
    assert run.lease_until is None
    assert run.ended_at is None
    assert (run.tokens_in, run.tokens_out, run.cost_micro, run.model_used) == (10, 5, 7, "stub-1")

    steps = steps_of(container, made.run_id)
    assert [(step.number, step.skill, step.action_type) for step in steps] == [
        (number, skill, "tool_call") for number, skill in enumerate(STEPS, start=1)
    ]
    assert all(step.ended_at is not None and step.error_code is None for step in steps)
    assert orjson.loads(steps[0].summary or "") == {"priority": "urgent", "category": "refund", "confidence": 0.91}
    assert steps[1].output is not None
    assert steps[1].output["verdict"]["outcome"] == "sufficient"
    assert (steps[2].tokens_in, steps[2].model) == (10, "stub-1")

    checkpoints = checkpoints_of(container, made.run_id)
    assert [(row.step_number, row.schema_version) for row in checkpoints] == [(1, 2), (2, 2), (3, 2)]
    assert Observation.model_validate(checkpoints[2].observation).draft is not None

    artifacts = artifacts_of(container, made.run_id)
    assert [(row.type, row.version) for row in artifacts] == [("classification", 1), ("search_result", 1), ("draft", 1)]
    assert [(call.task, call.step_number) for call in calls_of(container, made.run_id)] == [("plan", 3)]

    ticket = ticket_of(container, made.ticket_id)
    assert (ticket.status, ticket.priority, ticket.category, ticket.priority_set_by) == (
        "processing",
        "urgent",
        "refund",
        "ai",
    )
    assert ticket.confidence == pytest.approx(0.91)


def test_events_are_numbered_without_gaps_and_reach_the_stream_under_the_same_numbers(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    start_runtime().execute(made.run_id)
    events = events_of(container, made.thread_id)
    assert [event.type for event in events] == [
        "run_created",
        "run_started",
        *["step_started", "step_completed"] * 3,
        "draft_ready",
        "review_requested",
    ]
    assert [event.seq for event in events] == list(range(1, 11))
    assert thread_of(container, made.thread_id).last_seq == 10
    until(lambda: stream_of(container, made.thread_id) == list(range(1, 11)))
    assert events[3].payload["facts"]["category"] == "refund"
    assert events[5].payload["facts"] == {
        "found": 1,
        "outcome": "sufficient",
        "titles": ["退款时效"],
        "keyword_only": False,
    }
    draft = artifacts_of(container, made.run_id)[-1]
    assert events[8].payload == {"artifact_id": str(draft.id)}
    passage = draft.content["citations"][0]["text"]
    assert all(passage not in str(event.payload) for event in events)


def test_what_a_person_set_is_never_overwritten(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    with container.transaction() as session:
        session.execute(update(Ticket).values(priority="normal", priority_set_by="person"))
    start_runtime().execute(made.run_id)
    ticket = ticket_of(container, made.ticket_id)
    assert (ticket.priority, ticket.priority_set_by) == ("normal", "person")
    assert (ticket.category, ticket.category_set_by) == ("refund", "ai")


def test_what_the_base_does_not_cover_goes_to_a_person_with_the_reason(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(retriever=FixedRetriever([Sufficiency.INSUFFICIENT]))).execute(made.run_id)
    run, ticket = run_of(container, made.run_id), ticket_of(container, made.ticket_id)
    assert run.status == "waiting_for_escalation"
    assert ticket.escalated_at is not None
    assert ticket.escalation_reason == "The knowledge base does not answer this ticket."
    last = events_of(container, made.thread_id)[-1]
    assert (last.type, last.payload) == ("run_escalated", {"reason": ticket.escalation_reason})
    assert [row.type for row in artifacts_of(container, made.run_id)].count("draft") == 0


def test_a_failed_step_is_on_record_and_the_run_goes_on(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(classifier=FixedClassifier(failures=1))).execute(made.run_id)
    first, second = steps_of(container, made.run_id)[:2]
    assert (first.error_code, first.output, first.ended_at is not None) == ("bad_output", None, True)
    assert second.error_code is None
    assert run_of(container, made.run_id).status == "waiting_for_review"
    assert events_of(container, made.thread_id)[3].payload == {
        "step": 1,
        "skill": "classify_ticket",
        "error": "bad_output",
    }


def test_a_planner_that_stops_between_steps_escalates(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(planner=ScriptedPlanner([call("classify_ticket")]))).execute(made.run_id)
    assert run_of(container, made.run_id).status == "waiting_for_escalation"
    assert ticket_of(container, made.ticket_id).escalation_reason == "The agent stopped without a draft."
    assert len(calls_of(container, made.run_id)) == 2


@pytest.mark.parametrize(
    ("part", "code", "message"),
    [
        ({"planner": AbsentModel()}, "model_unavailable", NO_MODEL),
        ({"retriever": BrokenRetriever()}, "unexpected", UNEXPECTED),
    ],
)
def test_system_errors_fail_the_run_in_plain_words(
    container: Container, start_runtime: StartRuntime, part: dict[str, object], code: str, message: str
) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(**part)).execute(made.run_id)
    run = run_of(container, made.run_id)
    assert (run.status, run.error_code, run.error_message) == ("failed", code, message)
    assert run.ended_at is not None
    assert all(step.ended_at is not None for step in steps_of(container, made.run_id))
    assert events_of(container, made.thread_id)[-1].payload == {"code": code, "ticket": "pending"}


def test_a_run_whose_planner_this_process_lacks_goes_by_rules_and_says_so(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    with container.transaction() as session:
        session.execute(update(Run).values(planner="model", model_planned="model-1"))
    start_runtime().execute(made.run_id)
    run = run_of(container, made.run_id)
    assert (run.status, run.planner, run.model_planned) == ("waiting_for_review", "rule", None)
    assert events_of(container, made.thread_id)[1].payload == {"planner": "rule"}


@pytest.mark.parametrize(
    ("status", "words"), [(401, failures.KEY_REFUSED), (402, failures.OUT_OF_CREDIT), (404, failures.UNKNOWN_MODEL)]
)
def test_a_run_that_a_model_service_refuses_says_what_the_service_said(
    container: Container,
    settings: Settings,
    stub_llm: ModelServer,
    start_runtime: StartRuntime,
    login: Login,
    status: int,
    words: str,
) -> None:
    made = make_ticket(container)
    model = {"llm_base_url": stub_llm.base_url, "llm_model": f"stub;status={status}"}
    client = ChatClient(settings.model_copy(update=model))
    start_runtime(make_agent(planner=ModelPlanner(client)), client.close).execute(made.run_id)
    run = run_of(container, made.run_id)
    assert (run.status, run.error_code, run.error_message) == ("failed", "model_unavailable", words)
    page = login().get(f"/tickets/{made.number}", headers={"Accept-Language": "en"}).get_data(as_text=True)
    assert words in unescape(page)


def test_text_that_postgresql_cannot_store_does_not_fail_a_run(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(drafter=NulDrafter())).execute(made.run_id)
    assert run_of(container, made.run_id).status == "waiting_for_review"
    assert artifacts_of(container, made.run_id)[-1].content["text"] == "ab\\u0000c"


def test_a_second_delivery_of_the_job_does_nothing(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    runtime = start_runtime()
    runtime.execute(made.run_id)
    before = thread_of(container, made.thread_id).last_seq
    runtime.execute(made.run_id)
    assert thread_of(container, made.thread_id).last_seq == before
    assert run_of(container, made.run_id).fence == 1
