"""The whole product as real processes on services of the test session: what a person with a browser meets."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from sqlalchemy import Engine, make_url, text

from app.bootstrap import Container, build_container
from app.knowledge.models import DocState, KnowledgeDoc
from app.knowledge.service import add_document
from app.settings import ROOT, Settings
from dev.database import bring_up_to_date
from dev.processes import child_environment
from dev.translations import compile_catalogues
from tests.support.own_valkey import OwnValkey
from tests.support.waiting import until

START_LIMIT_S = 90.0
KNOWLEDGE = Path(__file__).with_name("knowledge")
COMMANDS = {
    "web": [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "wsgi:app"],
    "worker": [sys.executable, "-m", "jobs.worker", "delivery", "urgent", "runs", "knowledge"],
    "embedder": [sys.executable, "-m", "jobs.embedder"],
    "schedule": [sys.executable, "-m", "jobs.schedule"],
}


class Stack:
    """Web, worker, embedder and schedule with a database and a Valkey of their own."""

    def __init__(self, name: str, base: Settings, admin: Engine, folder: Path, **settings: str) -> None:
        self._folder = folder
        folder.mkdir()
        self._valkey = OwnValkey(folder)
        database = f"browser_{name}"
        with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {database}"))
        url = make_url(base.database_url).set(database=database).render_as_string(hide_password=False)
        self._environment = {
            "DATABASE_URL": url,
            "REDIS_URL": self._valkey.url,
            "VAR_DIR": str(folder),
            "DEMO": "1",
            "PORT": str(_free_port()),
            "WEB_PROCESSES": "1",
            **settings,
        }
        self.url = f"http://127.0.0.1:{self._environment['PORT']}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        values = {key.lower(): value for key, value in self._environment.items()}
        self.settings = Settings(_env_file=None, **values)
        self.container: Container = build_container(self.settings)

    def start(self) -> None:
        """Start everything and wait until pages answer and the documents can be found."""
        self._valkey.start()
        bring_up_to_date(self.settings.database_url)
        compile_catalogues()
        for name in COMMANDS:
            self.start_process(name)
        with self.container.transaction() as session:
            for document in sorted(KNOWLEDGE.glob("*.md")):
                add_document(session, name=document.name, content=document.read_bytes(), staff_id=None)
        until(self._documents_are_active, limit_s=START_LIMIT_S)

    def start_process(self, name: str) -> None:
        """Start one process; for the web, wait until it answers."""
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                COMMANDS[name], cwd=ROOT, env=child_environment(self._environment), stdout=log, stderr=log
            )
        if name == "web":
            until(self._web_answers, limit_s=START_LIMIT_S)

    def kill_process(self, name: str) -> None:
        """Kill one process with all that it started, as a crash would."""
        process = self._processes.pop(name)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in (process.pid, *map(int, children)):
            os.kill(pid, signal.SIGKILL)
        process.wait()

    @contextmanager
    def valkey_away(self) -> Iterator[None]:
        """Take Valkey away for the time of the block; it comes back empty."""
        self._valkey.stop()
        try:
            yield
        finally:
            self._valkey.start()

    def stop(self) -> None:
        """End all processes."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.container.redis.close()
        self.container.engine.dispose()
        self._valkey.stop()

    def log_of(self, name: str) -> str:
        """Return what a process has printed."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _web_answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as answer:  # noqa: S310 - our own address
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def _documents_are_active(self) -> bool:
        with self.container.sessions() as session:
            states = {doc.state for doc in session.query(KnowledgeDoc)}
        assert DocState.FAILED not in states, self.log_of("worker")
        return states == {DocState.ACTIVE}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
