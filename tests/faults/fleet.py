"""Several arenas beside each other on one PostgreSQL: most of a schedule is waiting, so that more run than there are
cores. Each is fed by a thread of the caller's process."""

import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TextIO

import psycopg

from app.embedded import EmbeddedPostgres
from app.settings import ROOT
from dev.database import bring_up_to_date
from tests.faults.script import Report, Schedule
from tests.support.model_server import serve_stub

REPORT_LIMIT_S = 120
"""An arena that has not reported by then hangs; it is killed, and so is all that it has started."""
OnReport = Callable[[Schedule, Report], None]


class Fleet:
    """Use `with`: it starts PostgreSQL and the arenas, and stops them."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._postgres = EmbeddedPostgres(folder, durable=False)
        self._size = size
        self._free: queue.Queue[_Arena] = queue.Queue()
        self._stack = ExitStack()

    def __enter__(self) -> "Fleet":
        with ExitStack() as stack:
            model = stack.enter_context(serve_stub())
            url = self._postgres.start()
            stack.callback(self._postgres.stop)
            bring_up_to_date(url)
            self._configure(url)
            for number in range(self._size):
                folder = self._folder / f"arena{number}"
                folder.mkdir()
                database_url = url.replace("/draftdesk?", f"/arena{number}?", 1)
                arena = _Arena(folder, str(self._folder), database_url, model.base_url)
                stack.callback(arena.close)
                self._free.put(arena)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def perform(self, schedule: Schedule) -> Report:
        """Perform one schedule on the next arena that is free."""
        arena = self._free.get()
        try:
            return arena.perform(schedule)
        finally:
            self._free.put(arena)

    def perform_all(self, schedules: Iterable[Schedule], on_report: OnReport = lambda *_: None) -> list[Report]:
        """Perform many, on all arenas at once; `on_report` is called with each as it comes, one at a time."""
        lock = threading.Lock()

        def one(schedule: Schedule) -> Report:
            report = self.perform(schedule)
            with lock:
                on_report(schedule, report)
            return report

        with ThreadPoolExecutor(self._size) as pool:
            return list(pool.map(one, schedules))

    def _configure(self, url: str) -> None:
        """Make room for many connections, and a database for each arena. PostgreSQL's restart makes it so."""
        dsn = url.replace("+psycopg", "", 1)
        with psycopg.connect(dsn.replace("/draftdesk?", "/postgres?", 1), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET max_connections = 400")
            for number in range(self._size):
                name = f"arena{number}"
                connection.execute(f"CREATE DATABASE {name} TEMPLATE draftdesk")
                # A killed server must not lose what it has confirmed; a deadlock is to be found while it is rare.
                connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
                connection.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '50ms'")
        self._postgres.stop()
        self._postgres.start()


class _Arena:
    """One arena, as a process that is started again when it had to be killed."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._arguments = [str(folder), *arguments]
        self._log = folder / "arena.log"
        self._process = self._start()

    def perform(self, schedule: Schedule) -> Report:
        """Send the schedule and wait for the report."""
        with suppress(BrokenPipeError):  # it has died; its report will not come
            _in(self._process).write(schedule.model_dump_json() + "\n")
            _in(self._process).flush()
        out = _out(self._process)
        ready, _, _ = select.select([out], [], [], REPORT_LIMIT_S)
        line = out.readline() if ready else ""
        if line:
            return Report.model_validate_json(line)
        problem = f"comes_to_rest: the arena gave no report within {REPORT_LIMIT_S} s, or has died"
        self.close()
        log = self._log.read_text(errors="replace")[-4000:]
        self._process = self._start()
        return Report(seed=schedule.seed, name=schedule.name, mutant=schedule.mutant, violations=[problem], log=log)

    def close(self) -> None:
        """End it: by the end of its input, or with all that it has started when it does not listen."""
        with suppress(BrokenPipeError):
            _in(self._process).close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode != 0:  # else it has ended all that it had started
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        _out(self._process).close()

    def _start(self) -> "subprocess.Popen[str]":
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.faults.arena", *self._arguments],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )


def _in(process: "subprocess.Popen[str]") -> TextIO:
    assert process.stdin is not None
    return process.stdin


def _out(process: "subprocess.Popen[str]") -> TextIO:
    assert process.stdout is not None
    return process.stdout
