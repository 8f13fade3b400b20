"""Cancel: the row first, then the signal; the socket to the model closes at once, and a lost signal is made up for."""

import asyncio
from itertools import pairwise

import orjson
from sqlalchemy import update

from app.agent.loop import Agent
from app.agent.rule_planner import RulePlanner
from app.bootstrap import Container
from app.guard.evidence import cite_sentences
from app.llm.client import ChatClient
from app.llm.drafter import ModelDrafter
from app.review.service import cancel_run
from app.runs.models import Run
from app.settings import Settings
from app.skills import make_skills
from tests.agent.parts import FixedClassifier, FixedDrafter, FixedRetriever
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.runs.looking import artifacts_of, calls_of, events_of, run_of, steps_of
from tests.support.model_server import ModelServer
from tests.support.waiting import until


def model_agent(settings: Settings, stub: ModelServer, model: str) -> tuple[Agent, ChatClient]:
    """An agent whose draft is streamed by the stub."""
    client = ChatClient(settings.model_copy(update={"llm_base_url": stub.base_url, "llm_model": model}))
    skills = make_skills(FixedClassifier(), FixedRetriever(), ModelDrafter(client, cite_sentences))
    return Agent({"rule": RulePlanner()}, skills), client


def cancel(container: Container, made: MadeTicket) -> None:
    """Cancel as the page does."""
    staff_id = make_staff(container)
    with container.transaction() as session:
        cancel_run(session, ticket_id=made.ticket_id, run_id=made.run_id, staff_id=staff_id)


def test_cancel_closes_the_socket_to_the_model_while_the_draft_is_streamed(
    container: Container, settings: Settings, stub_llm: ModelServer, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    agent, client = model_agent(settings, stub_llm, "stub;chunks=60;chunk_delay=0.3")
    run = InBackground(start_runtime(agent, client.close), made.run_id)
    with container.redis.pubsub() as drafts:
        drafts.subscribe(f"draft:{made.thread_id}")
        until(lambda: (drafts.get_message(timeout=0.1) or {}).get("type") == "message")
    cancel(container, made)
    until(lambda: len(stub_llm.stats()["aborts"]) == 1)
    run.wait()

    assert stub_llm.stats()["aborts"][0]["phase"] == "mid_stream"
    assert run_of(container, made.run_id).status == "cancelled"
    assert events_of(container, made.thread_id)[-1].type == "run_cancelled"
    assert steps_of(container, made.run_id)[2].error_code == "cancelled"
    (call,) = calls_of(container, made.run_id)
    assert (call.task, call.finish_reason) == ("draft", "cancelled")
    run_row = run_of(container, made.run_id)
    assert call.tokens_in > 0
    assert (run_row.tokens_in, run_row.tokens_out) == (call.tokens_in, call.tokens_out)


def test_a_lost_signal_is_made_up_for_by_the_lease(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    drafter = FixedDrafter(gate=asyncio.Event())
    run = InBackground(start_runtime(make_agent(drafter=drafter), renew_every_s=0.05), made.run_id)
    until(drafter.started.is_set)
    with container.transaction() as session:
        session.execute(update(Run).values(status="superseded"))
    run.wait()
    assert run_of(container, made.run_id).status == "superseded"


def test_leases_are_renewed_while_a_run_is_driven(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    drafter = FixedDrafter(gate=asyncio.Event())
    run = InBackground(start_runtime(make_agent(drafter=drafter), lease_s=2, renew_every_s=0.05), made.run_id)
    until(drafter.started.is_set)
    first = run_of(container, made.run_id).lease_until
    assert first is not None
    until(lambda: (run_of(container, made.run_id).lease_until or first) > first)
    drafter.open_gate()
    run.wait()
    assert run_of(container, made.run_id).status == "waiting_for_review"


def test_the_draft_grows_in_frames_that_hold_the_whole_text_so_far(
    container: Container, settings: Settings, stub_llm: ModelServer, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    agent, client = model_agent(settings, stub_llm, "stub;chunks=12;chunk_delay=0.05")
    frames: list[bytes] = []
    with container.redis.pubsub() as drafts:
        drafts.subscribe(f"draft:{made.thread_id}")
        until(lambda: drafts.get_message(timeout=0.1))
        run = InBackground(start_runtime(agent, client.close), made.run_id)
        run.wait()
        while message := drafts.get_message(timeout=0.2):
            frames.append(message["data"])
    texts = [orjson.loads(frame)["text"] for frame in frames]
    assert len(texts) >= 3
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert len(texts) <= 12
    draft = artifacts_of(container, made.run_id)[-1]
    assert draft.content["text"].startswith(texts[-1].strip())
