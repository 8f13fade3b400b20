"""Hears the stop signals of runs: one subscriber per process. A signal may be lost; leases and guards are the net."""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.ids import parse_id
from app.live.publisher import stop_channel

log = logging.getLogger(__name__)
RECONNECT_S = 1.0
_PREFIX = stop_channel(UUID(int=0)).removesuffix(str(UUID(int=0)))


class StopSubscriber:
    """Calls `stop` with each run that is told to stop. `run` is its task; `ready` is set while it hears."""

    def __init__(self, redis: "Redis", stop: Callable[[UUID], None]) -> None:
        self._redis = redis
        self._stop = stop
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Listen until cancelled; after a lost connection listen again."""
        while True:
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                log.warning("stop signals are not heard (%s); trying again", type(error).__name__)
            self.ready.clear()
            await asyncio.sleep(RECONNECT_S)

    async def _listen(self) -> None:
        async with self._redis.pubsub() as pubsub:
            await pubsub.psubscribe(f"{_PREFIX}*")
            async for message in pubsub.listen():
                if message["type"] == "psubscribe":
                    self.ready.set()
                elif message["type"] == "pmessage":
                    run_id = parse_id(message["channel"].decode().removeprefix(_PREFIX))
                    if run_id is not None:
                        self._stop(run_id)
