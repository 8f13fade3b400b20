"""The composition root: settings in, wired parts out. Used by web, jobs and CLI alike; knows no Flask."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from redis import Redis
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

import app.tables  # noqa: F401 - every foreign key finds its table, whichever rooms a process uses
from app.db.session import make_engine, make_sessions, transaction
from app.intake.messages import MessageWindow
from app.knowledge.retrieval import KnowledgeSearch
from app.live.hub import Hub
from app.live.job_queue import JobQueue
from app.live.publisher import Publisher
from app.live.sender import SignalSender
from app.llm.embedding_socket import make_query_embedder
from app.runs.fate import StalePolicy
from app.runs.lifecycle import RunPlan
from app.settings import Settings
from app.skills import RETRY_SAFE

REDIS_S = 1.0
"""How long a person may wait for a Redis that hangs. What it was to be told has been committed: the sweeps tell it."""


@dataclass(frozen=True)
class Container:
    """The parts that every process needs; built once by `build_container`."""

    settings: Settings
    engine: Engine
    sessions: sessionmaker[Session]
    redis: "Redis"

    @cached_property
    def queue(self) -> JobQueue:
        """Starts jobs."""
        return JobQueue(self.redis)

    @cached_property
    def publisher(self) -> Publisher:
        """Tells pages and workers what has been committed."""
        return Publisher(self.redis)

    @cached_property
    def hub(self) -> Hub:
        """Hears what is published, for all pages that this process serves; used by the web only."""
        return Hub(self.settings.redis_url)

    @cached_property
    def knowledge_search(self) -> KnowledgeSearch:
        """Searches the knowledge base for pages; vectors come from the embedder process, never from this one."""
        return KnowledgeSearch(self.sessions, make_query_embedder(self.settings), self.settings)

    @cached_property
    def _sender(self) -> SignalSender:
        return SignalSender(self.publisher, self.queue)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Open the one transaction of an entry point; its signals are sent after the commit."""
        with transaction(self.sessions, self._sender.send) as session:
            yield session

    @property
    def message_window(self) -> MessageWindow:
        """How long runs wait for further messages of the customer, by the settings of this process."""
        settings = self.settings
        return MessageWindow(settings.message_window_s, settings.message_wait_max_s, settings.reopen_days)

    def run_plan(self, *, hint: str | None = None, retry_from: UUID | None = None, by: UUID | None = None) -> RunPlan:
        """Return how a new agent run is to go, by the settings of this process."""
        settings = self.settings
        return RunPlan(
            planner=settings.run_planner,
            max_steps=settings.max_steps,
            timeout_ms=settings.run_timeout_ms,
            model=None if settings.offline else settings.llm_model,
            hint=hint,
            retry_from=retry_from,
            started_by=by,
        )

    @property
    def stale_policy(self) -> StalePolicy:
        """Return what becomes of runs whose worker died, by the settings of this process."""
        settings = self.settings
        return StalePolicy(settings.stale_runs == "retry", settings.max_deaths, RETRY_SAFE)


def build_container(settings: Settings, *, pool_size: int = 10, overflow: int = 10) -> Container:
    """Wire the parts on the services that `settings` names; nothing is connected before it is used.

    `pool_size` and `overflow` are `make_engine`'s: a process that serves pages needs more than one that does jobs.
    """
    engine = make_engine(settings.database_url, pool_size=pool_size, overflow=overflow)
    redis = Redis.from_url(settings.redis_url, socket_timeout=REDIS_S, socket_connect_timeout=REDIS_S)
    return Container(settings, engine, make_sessions(engine), redis)
