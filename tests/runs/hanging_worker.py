"""A worker that never ends its draft: `python -m tests.runs.hanging_worker <run id> <lease seconds>`."""

import asyncio
import sys
from uuid import UUID

from app.settings import Settings
from jobs.runtime import RunRuntime
from tests.agent.parts import FixedDrafter
from tests.runs.conftest import make_agent, nothing

if __name__ == "__main__":
    lease_s = float(sys.argv[2])
    agent = make_agent(drafter=FixedDrafter(gate=asyncio.Event()))
    runtime = RunRuntime(Settings(), agent, nothing, lease_s=lease_s, renew_every_s=lease_s / 4)
    runtime.start()
    runtime.execute(UUID(sys.argv[1]))
