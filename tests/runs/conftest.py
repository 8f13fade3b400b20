"""Runs driven by the real runtime, on PostgreSQL and Valkey, with hand-written ports of the agent."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest

from app.agent.loop import Agent
from app.agent.ports import Classifier, Drafter, Planner, Retriever
from app.agent.rule_planner import RulePlanner
from app.settings import Settings
from app.skills import make_skills
from jobs.runtime import RunRuntime
from tests.agent.parts import FixedClassifier, FixedDrafter, FixedRetriever
from tests.support.model_server import model_server, stub_llm
from tests.support.own_valkey import OwnValkey
from tests.support.waiting import until

__all__ = ["model_server", "stub_llm"]

StartRuntime = Callable[..., RunRuntime]


def make_agent(
    *,
    planner: Planner | None = None,
    classifier: Classifier | None = None,
    retriever: Retriever | None = None,
    drafter: Drafter | None = None,
) -> Agent:
    """An agent on hand-written ports; any of them may be another."""
    skills = make_skills(classifier or FixedClassifier(), retriever or FixedRetriever(), drafter or FixedDrafter())
    return Agent({"rule": planner or RulePlanner()}, skills)


async def nothing() -> None:
    """Close nothing."""


@pytest.fixture
def start_runtime(settings: Settings) -> Iterator[StartRuntime]:
    """Start a runtime as a worker process does, on a thread of this one; it is stopped at the end."""
    with ExitStack() as stack:

        def start(
            agent: Agent | None = None,
            close: Callable[[], Awaitable[None]] = nothing,
            settings: Settings = settings,
            **timing: float,
        ) -> RunRuntime:
            runtime = RunRuntime(settings, agent or make_agent(), close, **timing)
            runtime.start()
            stack.callback(runtime.stop)
            return runtime

        yield start


@pytest.fixture
def own_valkey(var_dir: Path) -> Iterator[OwnValkey]:
    """A Valkey of this test's own, not running yet."""
    valkey = OwnValkey(var_dir)
    yield valkey
    valkey.stop()


class InBackground:
    """One run that a thread drives meanwhile."""

    def __init__(self, runtime: RunRuntime, run_id: UUID) -> None:
        self._thread = threading.Thread(target=runtime.execute, args=(run_id,), daemon=True)
        self._thread.start()

    def wait(self, limit_s: float = 10.0) -> None:
        """Wait until the run's task has ended."""
        until(lambda: not self._thread.is_alive(), limit_s=limit_s)
