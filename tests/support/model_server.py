"""The fixture `stub_llm`: the stub model server as a process of its own, reached over HTTP like any provider."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A running stub. Its knobs ride on the model name, see `stub_llm.py`."""

    port: int

    @property
    def base_url(self) -> str:
        """What LLM_BASE_URL or EMBEDDING_BASE_URL is set to."""
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> dict[str, Any]:
        """Return its counters and aborts."""
        return self._call("GET", "/stats")

    def requests(self) -> list[dict[str, Any]]:
        """Return the bodies of the latest chat requests, oldest first."""
        return list(self._call("GET", "/requests")["requests"])

    def reset(self) -> None:
        """Make it forget what it was asked."""
        self._call("POST", "/reset")

    def _call(self, method: str, path: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()


@contextmanager
def serve_stub() -> Iterator[ModelServer]:
    """Run a stub process for as long as it is needed."""
    command = [sys.executable, "-m", "tests.support.stub_llm"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            listening = process.stdout.readline().split()
            assert listening[:1] == ["LISTEN"], "the stub model server did not start"
            yield ModelServer(int(listening[2]))
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """One stub process for the session."""
    with serve_stub() as server:
        yield server


@pytest.fixture
def stub_llm(model_server: ModelServer) -> ModelServer:
    """The stub model server, with nothing remembered."""
    model_server.reset()
    return model_server
