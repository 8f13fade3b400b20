"""Model clients on the stub server, and the observation that they are asked about."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from app.agent.skill import CallLog
from app.llm.client import ChatClient
from app.settings import Settings
from tests.support.model_server import ModelServer

KEY = "sk-very-secret-4711"
T = TypeVar("T")


@pytest.fixture
def calls() -> CallLog:
    """An empty log of paid calls."""
    return CallLog()


@pytest.fixture
def with_client(stub_llm: ModelServer) -> Callable[..., object]:
    """Run `work(client)` on a loop of its own, with a client whose model name carries the stub's knobs."""

    def run(
        work: Callable[[ChatClient], Awaitable[T]], model: str = "stub", base_url: str = "", timeout_s: float = 5.0
    ) -> T:
        settings = Settings(
            _env_file=None,
            demo=True,
            llm_base_url=base_url or stub_llm.base_url,
            llm_api_key=KEY,
            llm_model=model,
            llm_timeout_s=timeout_s,
        )

        async def main() -> T:
            client = ChatClient(settings)
            try:
                return await work(client)
            finally:
                await client.close()

        return asyncio.run(main())

    return run
