"""Measures the time from a ticket's arrival to its draft: `python -m bench.run_overhead [--runs 100] [--stub FILE]`.

Real services (embedded, in a temporary folder), the demo documents, a worker process as the Procfile starts it, and
answerable demo tickets one after another: received through intake, measured until the hint of `draft_ready` arrives on
the feed. Once offline (classes by embeddings and rules, hybrid search, extracted drafts), once with the stub model at
zero think time, which leaves orchestration, search and HTTP.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from uuid import UUID

from redis import Redis
from sqlalchemy import func, select

from app.bootstrap import Container, build_container
from app.clock import monotonic
from app.demo.loader import load
from app.demo.tickets import read_tickets
from app.embedded import EmbeddedServices, ServiceUrls
from app.live.publisher import FEED
from app.runs.models import Run, RunStatus
from app.settings import ROOT, Settings
from bench.stage import STUB, migrate, receive, stub_model

LIMIT_S = 60
WARM = 5
"""Tickets before the first that counts: the worker may still be starting."""
ENDS = (b"draft_ready", b"run_escalated", b"run_failed")


@contextmanager
def worker(environment: Mapping[str, str]) -> Iterator[None]:
    """Run a worker process; it is told to stop at the end."""
    with subprocess.Popen([sys.executable, "-m", "jobs.worker"], cwd=ROOT, env=environment) as process:
        try:
            yield
        finally:
            process.terminate()


def measure(container: Container, runs: int) -> tuple[list[float], int]:
    """Return milliseconds to the draft of each ticket that got one, and how many got none."""
    answerable = [ticket for ticket in read_tickets() if ticket.answerable]
    times, without = [], 0
    with Redis.from_url(container.settings.redis_url, socket_timeout=LIMIT_S + 1) as feed:
        for ticket in islice(cycle(answerable), runs):
            last = feed.xrevrange(FEED, count=1)[0][0]
            started = monotonic()
            fields = {"customer_id": ticket.customer_id, "subject": ticket.subject, "content": ticket.content}
            if wait_for_end(feed, last, receive(container, fields).ticket_id) == b"draft_ready":
                times.append(1000 * (monotonic() - started))
            else:
                without += 1
    return times, without


def wait_for_end(feed: "Redis", last: bytes, ticket_id: UUID) -> bytes:
    """Read the feed after the entry `last` until the ticket's run has come to an end; return the event's type."""
    while answer := feed.xread({FEED: last}, block=1000 * LIMIT_S):
        for entry_id, hint in answer[0][1]:
            last = entry_id
            if hint.get(b"ticket") == str(ticket_id).encode() and hint[b"type"] in ENDS:
                return hint[b"type"]
    raise TimeoutError(f"no draft within {LIMIT_S} s")


def wait_for_demo(container: Container) -> None:
    """Wait until the worker has been through the demo tickets: a warm worker is what is measured."""
    busy = (RunStatus.CREATED, RunStatus.RUNNING, RunStatus.RETRYING)
    with Redis.from_url(container.settings.redis_url, socket_timeout=None) as feed:
        while True:
            with container.transaction() as session:
                if not session.scalar(select(func.count()).where(Run.status.in_(busy))):
                    return
            feed.xread({FEED: "$"}, block=500)


def bench(urls: ServiceUrls, mode: str, runs: int, **model: str) -> None:
    """Measure one mode and print its line."""
    settings = Settings(_env_file=None, demo=True, database_url=urls.database_url, redis_url=urls.redis_url, **model)
    container = build_container(settings)
    names = {name.upper(): value for name, value in model.items()}
    environment = {**names, "DEMO": "1", "DATABASE_URL": urls.database_url, "REDIS_URL": urls.redis_url}
    with worker(environment):
        load(container, lambda *_: None)
        wait_for_demo(container)
        measure(container, WARM)
        times, without = measure(container, runs)
    container.engine.dispose()
    p95 = statistics.quantiles(times, n=20)[-1]
    print(
        f"{mode:8} {len(times):5} drafts  median {statistics.median(times):7.1f} ms  p95 {p95:7.1f} ms  "
        f"without a draft: {without}"
    )


def main() -> None:
    """Run both modes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="tickets per mode")
    parser.add_argument("--stub", type=Path, default=STUB)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dd-bench-"))
        services = EmbeddedServices(Path(folder))
        stack.callback(services.stop)
        urls = services.start()
        migrate(urls.database_url)
        bench(urls, "offline", arguments.runs)
        base_url = stack.enter_context(stub_model(arguments.stub))
        bench(urls, "stub", arguments.runs, llm_base_url=base_url, llm_model="stub")


if __name__ == "__main__":
    main()
