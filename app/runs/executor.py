"""Executes one run: claims it, drives the agent, and brings every ending to a true state with a reason."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import psycopg
import sqlalchemy.exc
from psycopg.errors import LockNotAvailable

from app.agent.loop import Agent, RunPorts, SkillTimedOut, Start, drive
from app.agent.ports import ModelTimedOut, ModelUnavailable, RunLost
from app.agent.skill import CallLog
from app.agent.steps import Budget
from app.logs import log_context
from app.msgids import msgid
from app.runs.journal import RunJournal
from app.runs.leases import HeldRuns
from app.runs.ledger import Claimed, Failure, Ledger
from app.runs.resume import Beginning, beginning_of

log = logging.getLogger(__name__)

DATABASE_AWAY = msgid("The database did not answer. Try it again.")
TIMED_OUT = msgid("The run took too long.")
SKILL_TIMED_OUT = msgid("A step took too long: %(skill)s was given %(limit_s)s seconds.")
UNEXPECTED = msgid("Something went wrong inside; the log has the details.")


class Executor:
    """Drives runs on one asyncio loop; as many at a time as call `execute`."""

    def __init__(
        self,
        ledger: Ledger,
        agent: Agent,
        held: HeldRuns,
        *,
        owner: str,
        skill_timeout_s: float,
        timeout_retries: int,
        handed_back: Callable[[UUID], None],
    ) -> None:
        """`owner` names this process in leases; `handed_back` is told the runs that another process must go on with.

        A run that timed out is retried by itself up to `timeout_retries` times.
        """
        self._ledger = ledger
        self._agent = agent
        self._held = held
        self._owner = owner
        self._skill_timeout_s = skill_timeout_s
        self._timeout_retries = timeout_retries
        self._handed_back = handed_back
        self._one_suspect = asyncio.Semaphore(1)

    async def execute(self, run_id: UUID) -> None:
        """Drive a run to where it waits for a person or ends; return at once if it does not wait for a worker."""
        with log_context(f"run={run_id}"), self._held.hold(run_id) as now_ours:
            try:
                if await self._claim_and_drive(run_id, now_ours, suspect=False):
                    return
                # Of the runs that were with a worker when it died, one at a time: the one to blame takes none along.
                async with self._one_suspect:
                    if not await self._claim_and_drive(run_id, now_ours, suspect=True):
                        log.info("not claimed: someone has it, or it has ended")
            except LockNotAvailable:
                log.warning("not claimed: somebody holds its ticket; it gets another place in the queue")

    async def _claim_and_drive(self, run_id: UUID, now_ours: Callable[[int], None], *, suspect: bool) -> bool:
        claimed = await self._ledger.claim(run_id, self._owner, self._agent.planners, suspect=suspect)
        if claimed is None:
            return False
        try:
            now_ours(claimed.fence)
            await self._drive(claimed)
        finally:
            self._ledger.publisher.forget(claimed.thread_id)
        return True

    async def _drive(self, claimed: Claimed) -> None:
        journal, calls = RunJournal(self._ledger, claimed), CallLog()
        limit = asyncio.timeout(claimed.row["timeout_ms"] / 1000)
        try:
            async with limit:
                beginning = beginning_of(claimed.row)
                journal.begin(beginning.facts)
                await drive(self._start(claimed, beginning), self._ports(claimed, journal, calls))
        except RunLost:
            log.info("stopped: the run was cancelled, superseded or taken over")
        except asyncio.CancelledError:
            # The one place that ends a cancelled run's task. Who cancelled the run has written that already.
            await self._leave(claimed, journal, calls)
        except Exception as error:
            failure = self._failure(claimed, error, out_of_time=limit.expired())
            await _to_its_end(self._fail(journal, calls, failure))
        finally:
            await _to_its_end(self._close(journal, calls))

    def _failure(self, claimed: Claimed, error: Exception, *, out_of_time: bool) -> Failure:
        """Return why a run failed that ended in `error`. Time-outs and a lost database are retried, so often."""
        retry = claimed.row["auto_retries"] < self._timeout_retries
        match error:
            case SkillTimedOut():
                detail = {"skill": error.skill, "limit_s": _short(error.limit_s)}
                return Failure("skill_timed_out", SKILL_TIMED_OUT, detail, retry)
            case ModelTimedOut():
                return Failure("model_timed_out", error.message, {"limit_s": _short(error.limit_s)}, retry)
            case ModelUnavailable():
                return Failure("model_unavailable", error.message)
            case TimeoutError() if out_of_time:
                return Failure("timed_out", TIMED_OUT, {"limit_s": _short(claimed.row["timeout_ms"] / 1000)}, retry)
            case psycopg.OperationalError() | sqlalchemy.exc.OperationalError():
                log.error("the run lost the database", exc_info=error)
                return Failure("database_away", DATABASE_AWAY, retry=retry)
            case _:
                log.error("the run failed", exc_info=error)
                return Failure("unexpected", UNEXPECTED)

    def _start(self, claimed: Claimed, beginning: Beginning) -> Start:
        row = claimed.row
        budget = Budget(row["max_steps"], row["max_steps"] - row["steps_taken"])
        return Start(beginning.observation, row["cur_step"], budget)

    def _ports(self, claimed: Claimed, journal: RunJournal, calls: CallLog) -> RunPorts:
        return RunPorts(
            planner=self._agent.planners[claimed.row["planner"]],
            skills=self._agent.skills,
            journal=journal,
            calls=calls,
            show_draft=journal.show_draft,
            skill_timeout_s=self._skill_timeout_s,
        )

    async def _leave(self, claimed: Claimed, journal: RunJournal, calls: CallLog) -> None:
        if not self._held.closing:
            log.info("stopped on a signal")
            return
        try:
            await journal.handed_back(calls)
        except (RunLost, psycopg.Error) as error:
            log.info("not handed back: %s", type(error).__name__)
        else:
            self._handed_back(claimed.run_id)

    async def _fail(self, journal: RunJournal, calls: CallLog, failure: Failure) -> None:
        try:
            await journal.failed(failure, calls)
        except RunLost:
            log.info("not failed: the run was no longer ours")
        except psycopg.Error as error:
            log.error("the failure could not be written (%s); the sweep will end this run", type(error).__name__)

    async def _close(self, journal: RunJournal, calls: CallLog) -> None:
        try:
            await journal.close(calls)
        except psycopg.Error as error:
            log.error("paid calls could not be written: %s", type(error).__name__)


async def _to_its_end(writing: Coroutine[Any, Any, None]) -> None:
    """Write to the end even if this task is stopped meanwhile: how the run failed and what was paid is not lost.

    A process that stops waits for the task no longer than it waits for all of them.
    """
    task = asyncio.create_task(writing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _short(seconds: float) -> float:
    """Return seconds as people write them: 60, not 60.0."""
    return int(seconds) if seconds.is_integer() else seconds
