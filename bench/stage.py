"""What the benches share: the product's processes on services of their own, requests as pages make them, and figures.

Everything is real and on this machine: embedded PostgreSQL and Valkey in a temporary folder, the commands of the
Procfile, the stub model server over HTTP. Times are of the one monotonic clock that all processes share.
"""

import http.client
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode
from uuid import UUID

import psutil
from alembic import command
from alembic.config import Config

from app.bootstrap import Container, build_container
from app.clock import monotonic
from app.demo.loader import ACCOUNTS, DOCUMENTS
from app.demo.tickets import read_tickets
from app.demo.vectors import demo_vectors
from app.embedded import EmbeddedPostgres, EmbeddedValkey
from app.ids import new_id
from app.intake.fields import parse_new_ticket
from app.intake.service import Received, receive_ticket
from app.knowledge.ingestion import Ingestion
from app.knowledge.service import add_document
from app.llm.embedding import make_embedder
from app.settings import ROOT, Settings
from app.staff.service import create_staff
from dev.processes import child_environment, procfile

T = TypeVar("T")
STUB = ROOT / "tests" / "support" / "stub_llm.py"
AGENT = ACCOUNTS[0]
FIELDS: Mapping[str, object] = next(
    {"customer_id": ticket.customer_id, "subject": ticket.subject, "content": ticket.content}
    for ticket in read_tickets()
    if ticket.answerable
)
"""A ticket that the demo documents answer."""


def until(look: Callable[[], T], *, limit_s: float = 180.0, every_s: float = 0.01) -> T:
    """Return the first true answer of `look`. Raises TimeoutError when there is none within `limit_s` seconds."""
    end = monotonic() + limit_s
    while not (answer := look()):
        if monotonic() > end:
            raise TimeoutError(f"did not come true within {limit_s} s")
        time.sleep(every_s)
    return answer


def figures(values: Sequence[float], unit: str = "ms") -> str:
    """Return median, p95 and maximum of some values, as the tables print them."""
    if not values:
        return "nothing measured"
    p95 = at_share(values, 0.95)
    return f"median {statistics.median(values):8.1f}  p95 {p95:8.1f}  max {max(values):8.1f} {unit}  (n={len(values)})"


def at_share(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def machine() -> str:
    """Return one line about the machine and how busy it is now: a figure means little without it."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, {psutil.virtual_memory().total >> 30} GB"


@contextmanager
def stub_model(path: Path = STUB) -> Iterator[str]:
    """Run the stub and yield its base URL."""
    with subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().split()[2]}/v1"
        finally:
            process.terminate()


def receive(container: Container, fields: Mapping[str, object] = FIELDS) -> Received:
    """Take a ticket in, of a customer of its own unless the fields name one."""
    new = parse_new_ticket(fields)
    with container.transaction() as session:
        return receive_ticket(session, source="bench", key=str(new_id()), new=new, plan=container.run_plan())


def migrate(database_url: str) -> None:
    """Bring a database to the newest schema."""
    config = Config(toml_file=ROOT / "pyproject.toml")
    config.attributes["database_url"] = database_url
    command.upgrade(config, "head")


@dataclass(frozen=True, slots=True)
class Tree:
    """A process and those that it started: gunicorn is several."""

    root: psutil.Process

    @property
    def processes(self) -> list[psutil.Process]:
        """All that live now, the root first."""
        with suppress(psutil.NoSuchProcess):
            return [self.root, *self.root.children(recursive=True)]
        return []

    def cpu_s(self) -> float:
        """Return the seconds of CPU that they have used so far."""
        return sum(sum(process.cpu_times()[:2]) for process in self.processes)

    def pss_mb(self) -> float:
        """Return their memory, what is shared counted in parts."""
        return sum(pss_mb(process.pid) for process in self.processes)


def pss_mb(pid: int) -> float:
    """Return the proportional set size of a process in MB; 0 when it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


class Process:
    """A process of the product and its log."""

    def __init__(self, line: str, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {line}"], cwd=ROOT, env=dict(environment), stdout=out, stderr=out
            )
        self.tree = Tree(psutil.Process(self._process.pid))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(errors="replace")

    def wait_until_ready(self) -> None:
        """Wait for the line that says so. Raises RuntimeError with the log when the process ends instead."""
        until(lambda: " ready" in self.log or self._has_ended())

    def _has_ended(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"a process ended at its start:\n{self.log}")
        return False

    def kill(self) -> None:
        """SIGKILL: what the benches of recovery do."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop it as a process manager would."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


class Stage:
    """Services, the stub, a container on both, and a way to start the lines of the Procfile on them."""

    def __init__(self, folder: Path, held: ExitStack, settings: Mapping[str, Any]) -> None:
        self._folder = folder
        self._held = held
        self._started = 0
        self.postgres, self.valkey = EmbeddedPostgres(folder), EmbeddedValkey(folder)
        held.callback(self.postgres.stop)
        database_url = self.postgres.start()
        held.callback(self.valkey.stop)
        redis_url = self.valkey.start()
        migrate(database_url)
        self.model_url = held.enter_context(stub_model())
        self.settings = {
            "demo": True,
            "database_url": database_url,
            "redis_url": redis_url,
            "var_dir": folder,
            "port": free_port(),
            "llm_base_url": self.model_url,
            "llm_model": "stub",
            **{name: self.model_url if value == "stub" else value for name, value in settings.items()},
        }
        self.container = build_container(Settings(_env_file=None, **self.settings))
        held.callback(self.container.engine.dispose)
        self.staff_id = self._add_agent()

    def _add_agent(self) -> UUID:
        with self.container.transaction() as session:
            return create_staff(
                session,
                username=AGENT.username,
                display_name=AGENT.display_name,
                password=AGENT.password,
                role=AGENT.role,
            )

    def add_documents(self) -> None:
        """Take in the demo documents; the vectors of the local model come from a file."""
        embedder = make_embedder(self.container.settings)
        ingestion = Ingestion(self.container.transaction, embedder, demo_vectors(embedder.name))
        for file in sorted(DOCUMENTS.iterdir()):
            with self.container.transaction() as session:
                doc_id = add_document(session, name=file.name, content=file.read_bytes(), staff_id=None)
            ingestion.run(doc_id)

    def start(self, name: str, **changes: str) -> Process:
        """Start a line of the Procfile with some settings changed; it ends with the stage, or before."""
        values = {key.upper(): str(int(value) if value is True else value) for key, value in self.settings.items()}
        self._started += 1
        log = self._folder / f"{self._started}-{name}.log"
        process = Process(procfile()[name], child_environment({**values, **changes}), log)
        self._held.callback(process.stop)
        if name == "web":
            until(self._web_answers)
        else:
            process.wait_until_ready()
        return process

    def browser(self) -> "Browser":
        """Return a browser that is signed in; the web must run."""
        return Browser(int(self.settings["port"]))

    def stub(self, path: str, method: str = "GET") -> dict[str, Any]:
        """Ask the stub, for example for `/stats`."""
        connection = http.client.HTTPConnection(self.model_url.split("/")[2], timeout=5)
        try:
            connection.request(method, path)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    def _web_answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", int(self.settings["port"]), timeout=2)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


@contextmanager
def stage(**settings: Any) -> Iterator[Stage]:
    """Set a stage up in a temporary folder and clear it away at the end; the value "stub" stands for the stub's URL."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended then, too
    with ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="dd-bench-"))
        yield Stage(Path(folder), held, settings)


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Browser:
    """One signed-in session over one kept-alive connection, as a page's requests are."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.cookie = ""
        token = self._token(self.get("/sign-in"))
        form = {"username": AGENT.username, "password": AGENT.password, "csrf_token": token}
        status, _ = self._ask("POST", "/sign-in", urlencode(form))
        assert status == 303, f"signing in was answered {status}"
        self._csrf = self._token(self.get("/tickets/new"))

    def get(self, path: str) -> str:
        """Return a page."""
        status, body = self._ask("GET", path)
        assert status == 200, f"{path} was answered {status}"
        return body

    def reconnect(self) -> None:
        """Let the next request come over a connection of its own, perhaps to another web process."""
        self._connection.close()

    def click(self, path: str, **fields: object) -> int:
        """Post what a button of the page posts through htmx; returns the status of the answer."""
        headers = {"HX-Request": "true", "HX-Request-Type": "partial", "X-CSRFToken": self._csrf}
        return self._ask("POST", path, urlencode(fields), headers)[0]

    def _ask(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        sent = {"Cookie": self.cookie, "Accept": "text/html", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, path, body, sent)
        answer = self._connection.getresponse()
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                self.cookie = value.partition(";")[0]
        return answer.status, answer.read().decode()

    @staticmethod
    def _token(page: str) -> str:
        found = re.search(r'name="csrf_token" value="([^"]+)"', page)
        assert found, "the page has no CSRF token"
        return found.group(1)


def pause_up_to(seconds: float) -> None:
    """Wait a random time, so that what is measured does not keep step with what runs periodically."""
    time.sleep(random.uniform(0, seconds))  # noqa: S311 - no secret
