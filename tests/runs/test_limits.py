"""Time and step limits: each ends a run in a reason of its own, and a time-out is marked for its retry at once."""

import asyncio
import signal
from collections.abc import Callable

import pytest
from rq.timeouts import JobTimeoutException
from sqlalchemy import update

from app.agent.values import SearchResult
from app.bootstrap import Container
from app.llm import failures
from app.llm.client import ChatClient
from app.llm.planner import ModelPlanner
from app.runs.executor import SKILL_TIMED_OUT, TIMED_OUT, UNEXPECTED
from app.runs.models import Run
from app.settings import Settings
from jobs.lanes import LaneWorker
from jobs.runtime import RunRuntime
from tests.agent.parts import FixedDrafter, FixedRetriever, ScriptedPlanner, call
from tests.factories import make_ticket
from tests.runs.conftest import StartRuntime, make_agent
from tests.runs.looking import calls_of, checkpoints_of, events_of, run_of, steps_of
from tests.support.model_server import ModelServer

Start = Callable[[Settings, StartRuntime, ModelServer], RunRuntime]


def hanging_run(settings: Settings, start_runtime: StartRuntime, stub_llm: ModelServer) -> RunRuntime:
    """A drafter that never ends, in a run that may take a moment."""
    return start_runtime(make_agent(drafter=FixedDrafter(gate=asyncio.Event())))


def hanging_skill(settings: Settings, start_runtime: StartRuntime, stub_llm: ModelServer) -> RunRuntime:
    """The same drafter, under a limit of its own."""
    limited = settings.model_copy(update={"skill_timeout_s": 0.2})
    return start_runtime(make_agent(drafter=FixedDrafter(gate=asyncio.Event())), settings=limited)


def hanging_model(settings: Settings, start_runtime: StartRuntime, stub_llm: ModelServer) -> RunRuntime:
    """A planner whose model never answers."""
    model = {"llm_base_url": stub_llm.base_url, "llm_model": "stub;delay=20", "llm_timeout_s": 0.2}
    client = ChatClient(settings.model_copy(update=model))
    return start_runtime(make_agent(planner=ModelPlanner(client)), client.close)


@pytest.mark.parametrize(
    ("start", "timeout_ms", "code", "message", "detail"),
    [
        (hanging_run, 1_000, "timed_out", TIMED_OUT, {"limit_s": 1.0}),
        (hanging_skill, 60_000, "skill_timed_out", SKILL_TIMED_OUT, {"skill": "draft_reply", "limit_s": 0.2}),
        (hanging_model, 60_000, "model_timed_out", failures.NO_ANSWER, {"limit_s": 0.2}),
    ],
)
@pytest.mark.parametrize("auto_retries", [0, 1])
def test_each_limit_has_its_name_and_is_retried_by_itself_once(
    container: Container,
    settings: Settings,
    start_runtime: StartRuntime,
    stub_llm: ModelServer,
    start: Start,
    timeout_ms: int,
    code: str,
    message: str,
    detail: dict[str, object],
    auto_retries: int,
) -> None:
    made = make_ticket(container)
    with container.transaction() as session:
        session.execute(update(Run).values(timeout_ms=timeout_ms, auto_retries=auto_retries))
    start(settings, start_runtime, stub_llm).execute(made.run_id)

    run = run_of(container, made.run_id)
    assert (run.status, run.error_code, run.error_message, run.error_detail) == ("failed", code, message, detail)
    due = auto_retries == 0
    assert (run.retry_at is not None) == due
    last = events_of(container, made.thread_id)[-1]
    told = {"code": code, "ticket": "pending"}
    assert (last.type, last.payload) == ("run_failed", told | {"retry": True} if due else told)
    assert run.ended_at is not None
    assert run.lease_until is None
    assert all(step.ended_at for step in steps_of(container, made.run_id))
    assert len(calls_of(container, made.run_id)) == 1
    if start is not hanging_model:
        assert steps_of(container, made.run_id)[2].error_code == code


def test_no_run_that_timed_out_is_retried_by_itself_where_that_is_switched_off(
    container: Container, settings: Settings, start_runtime: StartRuntime, stub_llm: ModelServer
) -> None:
    made = make_ticket(container)
    hanging_skill(settings.model_copy(update={"timeout_retries": 0}), start_runtime, stub_llm).execute(made.run_id)
    assert run_of(container, made.run_id).retry_at is None


class Raises(FixedRetriever):
    """A retriever that ends in this error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def search(self, query: str) -> SearchResult:
        raise self._error


@pytest.mark.parametrize("error", [TimeoutError("a socket"), JobTimeoutException("RQ's own limit")])
def test_a_time_out_of_nobodys_limit_is_no_time_out_of_the_run_and_no_text_for_the_planner(
    container: Container, start_runtime: StartRuntime, error: Exception
) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(retriever=Raises(error))).execute(made.run_id)
    run = run_of(container, made.run_id)
    assert (run.error_code, run.error_message, run.retry_at) == ("unexpected", UNEXPECTED, None)
    # A step that ends as data for the planner leaves a checkpoint; this one left none.
    assert [row.step_number for row in checkpoints_of(container, made.run_id)] == [1]


def test_rqs_own_limit_sets_no_alarm_in_a_lane() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with LaneWorker.death_penalty_class(1, JobTimeoutException):
        assert signal.getsignal(signal.SIGALRM) is before
        left_s, _ = signal.getitimer(signal.ITIMER_REAL)
        assert not 0 < left_s <= 1, "the limit of the test itself is minutes"


def test_a_run_out_of_steps_fails_in_one_write_with_the_loop_that_it_was_in(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    plans = [call("classify_ticket"), *[call("no_such_skill"), call("draft_reply")] * 2]
    start_runtime(make_agent(planner=ScriptedPlanner(plans))).execute(made.run_id)
    run = run_of(container, made.run_id)
    assert (run.status, run.error_code, run.retry_at) == ("failed", "step_limit", None)
    assert run.error_detail == {"steps": 5, "loop": "no_such_skill → draft_reply → …"}
    assert (run.ended_at is not None, run.lease_until) == (True, None)
    assert [event.type for event in events_of(container, made.thread_id)][-2:] == ["step_failed", "run_failed"]
    assert events_of(container, made.thread_id)[-1].payload == {"code": "step_limit", "ticket": "pending"}
    assert [row.step_number for row in checkpoints_of(container, made.run_id)] == [1, 2, 3, 4, 5]
