"""Worker processes as the Procfile starts them, on a Valkey that the test may take away."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from app.bootstrap import Container, build_container
from app.settings import ROOT, Settings
from tests.support.model_server import ModelServer, model_server, stub_llm
from tests.support.own_valkey import OwnValkey
from tests.support.waiting import until

__all__ = ["model_server", "stub_llm"]


class Process:
    """One running process and its log."""

    def __init__(self, module: str, arguments: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        command = [sys.executable, "-m", module, *arguments]
        with log.open("wb") as out:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)

    def wait_until_ready(self) -> None:
        """Wait for the line that says so."""
        until(lambda: " ready" in self.log, limit_s=60)

    def stop(self, limit_s: float = 15) -> int:
        """Send SIGTERM and return the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(limit_s)

    def kill(self) -> None:
        """End it by SIGKILL if it still runs."""
        self._process.kill()
        self._process.wait()

    def wait(self, limit_s: float = 60) -> int:
        """Wait until it has ended by itself and return the exit code, negative for a signal."""
        return self._process.wait(limit_s)

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(errors="replace")


StartProcess = Callable[..., Process]


@pytest.fixture
def own_valkey(var_dir: Path) -> Iterator[OwnValkey]:
    """A Valkey of this test's own, not running yet."""
    valkey = OwnValkey(var_dir)
    yield valkey
    valkey.stop()


@pytest.fixture
def own_settings(settings: Settings, own_valkey: OwnValkey, stub_llm: ModelServer) -> Settings:
    """Settings with the stub as model and embedder, so that no process loads a model of its own."""
    return settings.model_copy(
        update={
            "redis_url": own_valkey.url,
            "llm_base_url": stub_llm.base_url,
            "llm_model": "stub",
            "embedding_base_url": stub_llm.base_url,
        }
    )


@pytest.fixture
def parts(container: Container, own_settings: Settings) -> Iterator[Container]:
    """A container on these settings; `container` empties the tables afterwards."""
    made = build_container(own_settings)
    yield made
    made.engine.dispose()
    made.redis.close()


@pytest.fixture
def start_process(own_settings: Settings, tmp_path: Path) -> Iterator[StartProcess]:
    """Start a module as a process; it is killed at the end if it still runs."""
    started: list[Process] = []

    def start(module: str, *arguments: str, **changes: str) -> Process:
        names = ("database_url", "redis_url", "llm_base_url", "llm_model", "embedding_base_url")
        environment = {name.upper(): getattr(own_settings, name) for name in names}
        log = tmp_path / f"{len(started)}.log"
        started.append(Process(module, arguments, {**environment, "DEMO": "1", **changes}, log))
        return started[-1]

    yield start
    for process in started:
        process.kill()
