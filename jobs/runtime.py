"""Drives runs in one process: one asyncio loop in a thread of its own, shared by all lanes."""

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar
from uuid import UUID

from redis.asyncio import Redis

from app.agent.loop import Agent
from app.ids import new_id
from app.live.background import BackgroundPublisher
from app.live.cancel import StopSubscriber
from app.runs.executor import Executor
from app.runs.leases import LEASE_S, RENEW_EVERY_S, HeldRuns, LeaseKeeper
from app.runs.ledger import Ledger, make_pool
from app.settings import Settings

log = logging.getLogger(__name__)
T = TypeVar("T")
STOP_LIMIT_S = 5.0
"""How long runs may take to be handed back, and events to leave, when the process stops."""
RESTART_S = 1.0
"""The pause before a helper that has died is started again."""


class RunRuntime:
    """The loop, the database pool, the publisher, the stop subscriber and the lease keeper of a worker process."""

    def __init__(
        self,
        settings: Settings,
        agent: Agent,
        close_agent: Callable[[], Awaitable[None]],
        *,
        lease_s: float = LEASE_S,
        renew_every_s: float = RENEW_EVERY_S,
    ) -> None:
        self._settings = settings
        self._agent = agent
        self._close_agent = close_agent
        self._lease_s = lease_s
        self._held = HeldRuns()
        self._keeper = LeaseKeeper(settings.psycopg_dsn, self._held, lease_s=lease_s, every_s=renew_every_s)
        self._handed_back: list[UUID] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="runs", daemon=True)
        self._running: set[asyncio.Task[None]] = set()
        self._driving: set[Future[None]] = set()

    def start(self) -> None:
        """Start the loop and open the pool. Raises psycopg_pool.PoolTimeout when PostgreSQL does not answer."""
        self._thread.start()
        self._call(self._open())
        self._keeper.start()

    def execute(self, run_id: UUID) -> None:
        """Drive a run; returns when it waits for a person, has ended, or was not ours to drive."""
        driving = asyncio.run_coroutine_threadsafe(self._execute(run_id), self._loop)
        self._driving.add(driving)
        try:
            driving.result()
        finally:
            self._driving.discard(driving)

    def stop(self) -> list[UUID]:
        """Hand back all runs, close everything and return the runs that another process must go on with."""
        if self._loop.is_closed():
            return []
        self._held.hand_back()
        self._call(self._close())
        self._keeper.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for driving in tuple(self._driving):
            driving.cancel()  # its loop is gone, and its lane would wait for ever
        return self._handed_back

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self) -> None:
        settings = self._settings
        self._pool = make_pool(settings.psycopg_dsn, settings.worker_lanes)
        await self._pool.open(wait=True, timeout=30)
        self._redis = Redis.from_url(settings.redis_url, socket_timeout=5, socket_connect_timeout=2)
        # A subscriber waits for ever; the client's usual limit would end the wait.
        self._listening = Redis.from_url(settings.redis_url, socket_timeout=None)
        self._publisher = BackgroundPublisher(self._redis)
        self._executor = Executor(
            Ledger(self._pool, self._publisher, self._lease_s),
            self._agent,
            self._held,
            owner=f"{socket.gethostname()}:{os.getpid()}:{new_id()}",
            skill_timeout_s=settings.skill_timeout_s,
            timeout_retries=settings.timeout_retries,
            handed_back=self._handed_back.append,
        )
        helpers = (self._publisher.run, StopSubscriber(self._listening, self._held.stop).run)
        self._helpers = [asyncio.create_task(keep_running(helper)) for helper in helpers]

    async def _execute(self, run_id: UUID) -> None:
        task = asyncio.create_task(self._executor.execute(run_id))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.wait((task,))
        if not task.cancelled():  # which a stop does that meets a task at its very end
            task.result()

    async def _close(self) -> None:
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=STOP_LIMIT_S)
            if late:
                log.warning("%d runs were not handed back in time; the sweep will end them", len(late))
        await self._publisher.flush(STOP_LIMIT_S)
        for helper in self._helpers:
            helper.cancel()
        await asyncio.gather(*self._helpers, return_exceptions=True)
        await self._redis.aclose()
        await self._listening.aclose()
        await self._pool.close(timeout=1)
        if self._running:  # those that waited for a connection hear now that there will be none
            await asyncio.wait(self._running, timeout=1)
        await self._close_agent()


async def keep_running(helper: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a helper of all runs until cancelled, and again when it dies: without it they would go on half blind."""
    while True:
        try:
            await helper()
        except Exception:
            log.exception("a helper of all runs has died; starting it again")
        await asyncio.sleep(RESTART_S)
