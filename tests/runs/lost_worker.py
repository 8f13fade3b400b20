"""A worker that comes to grief within a draft: `python -m tests.runs.lost_worker hangs|dies RUN_ID LEASE_S`.

One that hangs waits to be killed; one that dies kills itself.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from uuid import UUID

from app.agent.skill import CallLog
from app.agent.values import Draft, Observation
from app.settings import Settings
from jobs.runtime import RunRuntime
from tests.agent.parts import FixedDrafter
from tests.runs.conftest import make_agent, nothing


class FatalDrafter:
    """Takes its whole process with it, as a bug in a native library does."""

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("not reached")


if __name__ == "__main__":
    how, run_id, lease_s = sys.argv[1], UUID(sys.argv[2]), float(sys.argv[3])
    drafter = FixedDrafter(gate=asyncio.Event()) if how == "hangs" else FatalDrafter()
    runtime = RunRuntime(Settings(), make_agent(drafter=drafter), nothing, lease_s=lease_s, renew_every_s=lease_s / 4)
    runtime.start()
    runtime.execute(run_id)
