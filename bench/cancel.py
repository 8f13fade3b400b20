"""Measures how fast "Stop drafting" stops the model: `python -m bench.cancel [--clicks 50] [--quick]`.

Web and worker as the Procfile starts them. A ticket is taken in, its call is in flight at the stub model, a signed-in
page's button posts the cancel. Measured from the sending of that request to the model's socket being closed at the
stub, and to the answer that the page gets: while the model is silent, while it streams the draft, and with Redis away,
where the worker finds out from PostgreSQL at the next renewal of its leases.
"""

import argparse

from app.clock import monotonic
from app.intake.service import Received
from app.runs.leases import RENEW_EVERY_S
from app.runs.models import Run, RunStatus
from bench.stage import Browser, Process, Stage, figures, machine, pause_up_to, receive, stage, until

SILENT = "stub;delay=300"
STREAMING = "stub;chunks=3000;text=3000;chunk_delay=.1"
AIM_MS = 50


class Clicks:
    """What the clicks of one arrangement took, in milliseconds."""

    def __init__(self) -> None:
        self.stopped: list[float] = []
        self.answered: list[float] = []

    def print(self, name: str) -> None:
        """Print a line for each of the two."""
        print(f"{name:24} socket closed  {figures(self.stopped)}")
        print(f"{'':24} HTTP answer    {figures(self.answered)}", flush=True)


def click(on: Stage, browser: Browser, ticket: Received, into: Clicks) -> None:
    """Cancel a run whose call is in flight, and wait until the stub has noticed."""
    aborts = len(on.stub("/stats")["aborts"])
    path = f"/tickets/{ticket.number}/cancel"
    clicked = monotonic()
    status = browser.click(path, run_id=ticket.run_id)
    answered = monotonic()
    assert status == 200, f"the cancel was answered {status}"
    ended = until(lambda: on.stub("/stats")["aborts"][aborts:])[0]["at"]
    into.stopped.append(1000 * (ended - clicked))
    into.answered.append(1000 * (answered - clicked))
    with on.container.sessions() as session:
        assert session.get_one(Run, ticket.run_id).status == RunStatus.CANCELLED


def start_call(on: Stage, counter: str) -> Received:
    """Take a ticket in and wait until its call is at the model: `requests` for any, `stream` for the draft."""
    before = on.stub("/stats")[counter]
    ticket = receive(on.container)
    until(lambda: on.stub("/stats")[counter] > before)
    return ticket


def measure(on: Stage, name: str, model: str, counter: str, clicks: int) -> None:
    """One after another: start, wait for the call, click."""
    worker, browser, seen = start_worker(on, model), on.browser(), Clicks()
    click(on, browser, start_call(on, counter), Clicks())  # the first one warms both processes
    for _ in range(clicks):
        ticket = start_call(on, counter)
        pause_up_to(0.1)
        click(on, browser, ticket, seen)
    worker.stop()
    seen.print(name)


def measure_without_redis(on: Stage, clicks: int) -> None:
    """Start all runs, take Redis away, and click on one after another."""
    worker, browser, seen = start_worker(on, SILENT), on.browser(), Clicks()
    tickets = [start_call(on, "requests") for _ in range(clicks)]
    on.valkey.stop()
    for ticket in tickets:
        pause_up_to(RENEW_EVERY_S)
        click(on, browser, ticket, seen)
    on.valkey.start()
    worker.stop()
    seen.print("Redis away")


def start_worker(on: Stage, model: str) -> Process:
    """Start a worker whose calls take minutes, and may."""
    return on.start("worker", LLM_MODEL=model, LLM_TIMEOUT_S="600", SKILL_TIMEOUT_S="600", WORKER_LANES="64")


def main() -> None:
    """Run the three arrangements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clicks", type=int, default=50, help="cancels per arrangement")
    parser.add_argument("--away", type=int, default=10, help="cancels with Redis away")
    parser.add_argument("--quick", action="store_true", help="a few of each, to see that the bench works")
    given = parser.parse_args()
    clicks, away = (3, 1) if given.quick else (given.clicks, given.away)
    with stage(run_timeout_ms=600_000) as on:
        on.add_documents()
        on.start("web")
        print(f"{machine()}; aim: socket closed p95 <= {AIM_MS} ms with Redis")
        measure(on, "model silent", SILENT, "requests", clicks)
        measure(on, "draft streaming", STREAMING, "stream", clicks)
        measure_without_redis(on, away)


if __name__ == "__main__":
    main()
