"""Measures the live pages: `python -m bench.sse [--viewers 1000] [--tickets 50 1] [--rate 20] [--quick]`.

gunicorn as the Procfile starts it, and signed-in ticket pages from a process of their own that hold the streams the
real pages name. Events are appended to tickets whose drafts wait for review and published as the product does it; each
changes every region of its ticket's pages and a row in every page's list. Measured from before an event's transaction
to the page's having the message that covers it. On the way a tenth of the pages is cut, misses events, and comes back
with Last-Event-ID: no event may be missing in the end (lost), and no message may tell of nothing new (doubled).
"""

import argparse
import html
import re
import resource
import time
from collections.abc import Sequence

from app.clock import monotonic
from app.intake.service import Received
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.models import EventType, Run, RunStatus
from bench.stage import Browser, Stage, at_share, machine, receive, stage, until
from bench.viewers import Seen, Viewers

CUT_EVERY = 10
PHASE_S = 10.0
GAP_S = 2.0
SETTLE_S = 60.0
Published = dict[int, list[tuple[int, float]]]
"""Number and time of every event, by the place of its ticket."""


def publish(on: Stage, tickets: Sequence[Received], rate: float, seconds: float, into: Published) -> None:
    """Append events to the tickets in turn, `rate` a second for so long."""
    began, count = monotonic(), int(rate * seconds)
    for number in range(count):
        time.sleep(max(0.0, began + number / rate - monotonic()))
        place, at = number % len(tickets), monotonic()
        with on.container.transaction() as session:
            thread = lock_thread(session, tickets[place].ticket_id)
            append_events(session, thread, [NewEvent(EventType.TICKET_CHANGED)])
            into.setdefault(place, []).append((thread.last_seq, at))


def stream_path(browser: Browser, ticket: Received) -> str:
    """Return the stream that a ticket's page opens."""
    found = re.search(r'hx-sse:connect="([^"]+)"', browser.get(f"/tickets/{ticket.number}"))
    assert found, "the page names no stream"
    return html.unescape(found[1])


def measure(on: Stage, tickets: Sequence[Received], viewers: int, rate: float, phase_s: float) -> None:
    """Measure pages that are spread over these tickets, and print what was seen."""
    web, browser = on.start("web"), on.browser()
    paths = [stream_path(browser, ticket) for ticket in tickets]
    for _ in range(20):  # both web processes have seen every template before their memory counts
        browser.reconnect()
        stream_path(browser, tickets[0])
    before_mb = web.tree.pss_mb()
    pages, published = Viewers(int(on.settings["port"]), browser.cookie), Published()
    try:
        opened_s = pages.call("open", [paths[page % len(tickets)] for page in range(viewers)])
        time.sleep(1)
        open_mb = web.tree.pss_mb()
        print(f"{viewers} pages on {len(tickets)} tickets, {rate:g} events/s; open in {opened_s:.1f} s", flush=True)
        cpu_s = web.tree.cpu_s()
        publish(on, tickets, rate, phase_s, published)
        cut = range(0, viewers, CUT_EVERY)
        pages.call("cut", cut)
        publish(on, tickets, rate, GAP_S, published)
        back_s = pages.call("resume", cut)
        publish(on, tickets, rate, phase_s / 2, published)
        seen, broken = wait_for_all(pages, published, len(tickets))
        cpu_s, after_mb = web.tree.cpu_s() - cpu_s, web.tree.pss_mb()
    finally:
        pages.close()
        web.stop()
    expected = report(seen, published, len(tickets))
    open_kb, after_kb = (1024 * (now_mb - before_mb) / viewers for now_mb in (open_mb, after_mb))
    print(f"  streams that were refused or broke off by themselves: {broken}")
    if broken:
        print("".join(f"    web: {line}\n" for line in web.log.splitlines()[-5:]), end="")
    print(f"  {len(cut)} cut pages back in {back_s:.1f} s; web CPU {1000 * cpu_s / expected:.2f} ms a page and event")
    print(
        f"  memory a page {open_kb:.0f} kB open, {after_kb:.0f} kB at the end; web in all {after_mb:.0f} MB", flush=True
    )


def wait_for_all(pages: Viewers, published: Published, tickets: int) -> tuple[list[Seen], int]:
    """Return what `report` of the pages says once each has the newest event of its ticket, or the patience is over."""
    newest = {place: events[-1][0] for place, events in published.items()}
    end = monotonic() + SETTLE_S
    while True:
        time.sleep(1)
        seen, broken = pages.call("report")
        behind = sum((one.last or 0) < newest.get(page % tickets, 0) for page, one in enumerate(seen))
        if not behind or monotonic() > end:
            return seen, broken


def report(seen: Sequence[Seen], published: Published, tickets: int) -> int:
    """Print the delays of the pages that were never cut, and what was lost or doubled on any.

    Returns how often an event was to come to a page.
    """
    delays: list[float] = []
    lost = doubled = events = 0
    for page, one in enumerate(seen):
        doubled += sum(number <= before for (before, _), (number, _) in zip(one.news, one.news[1:], strict=False))
        for seq, at in published.get(page % tickets, ()):
            events += 1
            arrived = next((time_ for number, time_ in one.news if number >= seq), None)
            if arrived is None:
                lost += 1
            elif page % CUT_EVERY:
                delays.append(1000 * (arrived - at))
    messages, size = sum(one.messages for one in seen), sum(one.size for one in seen)
    print(
        f"  event to page  p50 {at_share(delays, 0.5):7.1f}  p95 {at_share(delays, 0.95):7.1f}  "
        f"p99 {at_share(delays, 0.99):7.1f} ms  (n={len(delays)})\n"
        f"  {events} expected: lost {lost}, doubled {doubled}; {messages} messages, {size / 2**20:.0f} MB"
    )
    return events


def tickets_in_review(on: Stage, count: int) -> list[Received]:
    """Return tickets with a draft each, made by a worker that has left again."""
    worker = on.start("worker")
    tickets = [receive(on.container) for _ in range(count)]

    def all_ready() -> bool:
        with on.container.sessions() as session:
            runs = [session.get_one(Run, ticket.run_id) for ticket in tickets]
        return all(run.status == RunStatus.WAITING_FOR_REVIEW for run in runs)

    until(all_ready, limit_s=120, every_s=0.2)
    worker.stop()
    return tickets


def main() -> None:
    """Run each number of tickets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, default=1000)
    parser.add_argument("--tickets", type=int, nargs="+", default=[50, 1])
    parser.add_argument("--rate", type=float, nargs="+", default=[20, 2], help="events a second, for each of --tickets")
    parser.add_argument("--quick", action="store_true", help="100 pages on 5 tickets, to see that the bench works")
    given = parser.parse_args()
    if len(given.rate) != len(given.tickets):
        parser.error("--tickets and --rate need the same number of values")
    viewers, phase_s = given.viewers, PHASE_S
    if given.quick:
        viewers, phase_s, given.tickets, given.rate = 100, 3.0, [5], [5]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with stage() as on:
        on.add_documents()
        tickets = tickets_in_review(on, max(given.tickets))
        print(machine())
        for count, rate in zip(given.tickets, given.rate, strict=True):
            measure(on, tickets[:count], viewers, rate, phase_s)


if __name__ == "__main__":
    main()
