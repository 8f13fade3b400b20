"""`make run`: one machine, one command. Starts what the settings do not name elsewhere, then the Procfile.

Every foreseeable trouble ends in one plain line and exit code 1; Ctrl-C and SIGTERM stop everything and keep the data.
"""

import errno
import fcntl
import os
import shutil
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from app.demo.loader import ACCOUNTS
from app.embedded import ServiceFailed
from app.settings import Settings
from dev.database import bring_up_to_date
from dev.demo import load_demo, open_accounts, secret_of
from dev.processes import MARK, child_environment, end_leftovers, procfile, run_processes
from dev.services import CannotStart, only_this_machine, read_settings, say, services_for
from dev.signals import Stopped, ignore_signals, raise_on_signals
from dev.translations import compile_catalogues
from dev.watch import watched

SPACE_MB = 200
"""Free space below which the data folder is not touched: PostgreSQL needs room for its log to start at all."""

READY_LIMIT_S = 60


def main() -> int:
    """Run until stopped; returns the exit code."""
    raise_on_signals()
    try:
        with ExitStack() as held:
            try:
                return _run(read_settings(), held)
            finally:
                ignore_signals()
    except Stopped:
        say("Stopped before everything had started; the next start goes on from here.")
        return 0
    except (CannotStart, ServiceFailed) as problem:
        say(str(problem))
    except DBAPIError as problem:
        say(f"PostgreSQL refused: {str(problem.orig).strip().splitlines()[0]}")
    except OSError as problem:
        say(_in_words(problem))
    return 1


def _run(settings: Settings, held: ExitStack) -> int:
    var_dir = settings.var_dir.resolve()
    held.enter_context(_only_launcher_of(var_dir))
    if end_leftovers(var_dir):
        say("Ended processes that an earlier start had left behind.")
    _check_port(settings.host, settings.port)
    services = held.enter_context(services_for(settings))
    settings = services.settings
    say("Bringing the database up to date ...")
    bring_up_to_date(settings.database_url)
    compile_catalogues()
    if settings.demo:
        load_demo(settings)
    if not only_this_machine(settings.host):
        _warn_of_open_accounts(settings)
    held.callback(lambda: end_leftovers(var_dir))
    say("Starting the processes of the Procfile ...")
    values = {
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "VAR_DIR": str(var_dir),
        "DEMO": str(int(settings.demo)),
        "SECRET_KEY": secret_of(settings),
        MARK: str(var_dir),
    }
    with watched(services.embedded) as watch:
        on_started = [watch.start, lambda: _announce(settings)]
        failed = run_processes(procfile(), child_environment(values), on_started)
        say("Stopping; the data stays." if not failed else "A process can't go on, so everything stops; see above.")
    return failed


def _warn_of_open_accounts(settings: Settings) -> None:
    if names := open_accounts(settings):
        say(
            f"WARNING: HOST={settings.host} can be reached from other machines, and everybody knows the passwords of "
            f"the demo accounts {', '.join(names)}. To shut one: .venv/bin/python -m dev.command staff disable NAME"
        )


@contextmanager
def _only_launcher_of(var_dir: Path) -> Iterator[None]:
    """Hold the data folder's lock. A record lock: processes forked from here do not inherit it."""
    var_dir.mkdir(parents=True, exist_ok=True)
    free_mb = shutil.disk_usage(var_dir).free // 1_000_000
    if free_mb < SPACE_MB:
        raise CannotStart(f"Only {free_mb} MB are free for {var_dir}; DraftDesk needs {SPACE_MB} MB to start.")
    with (var_dir / "run.lock").open("a+") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise CannotStart(
                f"DraftDesk already runs on {var_dir} (process {lock.read().strip()}). Stop that one first, "
                "or name another folder and port: make run VAR_DIR=... PORT=..."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _check_port(host: str, port: int) -> None:
    try:
        address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(address[0]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address[4])
            probe.listen()
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            raise CannotStart(
                f"Port {port} on {host} is in use. Stop what uses it, or choose another: make run PORT={port + 1}"
            ) from None
        raise CannotStart(f"The web server can't use {host}:{port}: {problem.strerror}.") from None


def _announce(settings: Settings) -> None:
    """Wait until the web answers and say where. Runs beside the processes; they are stopped if it never does."""
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host  # noqa: S104 - compared only
    address = f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
    limit = time.monotonic() + READY_LIMIT_S
    while not _answers(f"{address}/healthz"):
        if time.monotonic() > limit:
            say(f"The web server has not answered within {READY_LIMIT_S} s; see its lines above.")
            os.kill(os.getpid(), signal.SIGTERM)
            return
        time.sleep(0.2)
    lines = ["", f"  DraftDesk is ready:  {address}", ""]
    if settings.demo:
        lines += [f"    {one.username:<7} {one.password:<12} {one.display_name}" for one in ACCOUNTS] + [""]
    say("\n".join([*lines, "  Ctrl-C stops it; the data stays.", ""]))


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own address
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _in_words(problem: OSError) -> str:
    if problem.errno == errno.ENOSPC:
        return f"The disk is full ({problem.filename or 'writing failed'})."
    if problem.filename:
        return (
            f"{problem.filename} can't be used: {(problem.strerror or 'error').lower()}. "
            "Name another folder: make run VAR_DIR=/some/folder"
        )
    return f"DraftDesk could not start: {problem}"


if __name__ == "__main__":
    sys.exit(main())
