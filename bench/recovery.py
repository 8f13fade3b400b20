"""Measures what becomes of a killed worker's run, and when: `python -m bench.recovery [--kills 20] [--quick]`.

Workers and the schedule as the Procfile starts them, with the product's own lease and sweeps. A worker that waits for
the model in the middle of a step is killed with SIGKILL; measured from the kill until PostgreSQL says what becomes of
the run: failed (STALE_RUNS=mark_failed), or failed and its new run claimed by another worker (retry). Then the schedule
meets thousands of such runs at once: how long it takes, and how much memory.
"""

import argparse
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID

from sqlalchemy import func, select, text

from app.clock import monotonic
from app.intake.service import Received
from app.review.service import cancel_run
from app.runs.leases import LEASE_S, RENEW_EVERY_S
from app.runs.models import ACTIVE, Run, RunStatus
from bench.stage import Process, Stage, figures, machine, pause_up_to, receive, stage, until

MODEL = "stub;delay=300"
POLICIES = ("mark_failed", "retry")
ABREAST = 4
"""Workers that are killed at about the same time; as many others stay."""
STALE = """
WITH c AS (INSERT INTO customers (id, external_id, name) VALUES (gen_random_uuid(), 'stale', 'stale') RETURNING id),
  n AS (SELECT gen_random_uuid() AS ticket, gen_random_uuid() AS thread, gen_random_uuid() AS run,
               gen_random_uuid() AS message FROM generate_series(1, :count)),
  k AS (
    INSERT INTO tickets (id, customer_id, channel, subject, status, last_customer_message_id, version)
    SELECT n.ticket, c.id, 'web', 'stale', 'processing', n.message, 1 FROM n, c
  ),
  m AS (
    INSERT INTO ticket_messages (id, ticket_id, number, kind, body)
    SELECT message, ticket, 1, 'customer', 'stale' FROM n
  ),
  t AS (INSERT INTO threads (id, ticket_id, last_seq, published_seq) SELECT thread, ticket, 1, 1 FROM n),
  r AS (
    INSERT INTO runs (id, thread_id, ticket_id, status, origin, planner, max_steps, cur_step, timeout_ms, tokens_in,
                      tokens_out, cost_micro, fence, deaths, auto_retries, last_customer_message_id, lease_owner,
                      lease_until)
    SELECT run, thread, ticket, 'running', 'ticket', 'rule', 5, 1, 120000, 0, 0, 0, 1, 0, 0, message, 'dead',
           now() - interval '1 minute' FROM n
  ),
  s AS (
    INSERT INTO steps (run_id, number, action_type, skill, input, tokens_in, tokens_out, cost_micro)
    SELECT run, 1, 'tool_call', 'classify_ticket', '{}', 0, 0, 0 FROM n
  )
INSERT INTO events (thread_id, seq, run_id, type, payload)
SELECT thread, 1, run, 'run_started', '{"planner": "rule"}' FROM n
"""


class Crew:
    """Workers of one lane each, by process id, so that a run is one worker's only."""

    def __init__(self, on: Stage) -> None:
        self._on = on
        self._workers: dict[int, Process] = {}

    def fill(self, count: int) -> None:
        """Start workers until there are so many."""
        with ThreadPoolExecutor(max_workers=4) as pool:
            for worker in pool.map(lambda _: self._start(), range(count - len(self._workers))):
                self._workers[worker.pid] = worker

    def take(self, pid: int) -> Process:
        """Return a worker, which is none of the crew any more."""
        return self._workers.pop(pid)

    def _start(self) -> Process:
        return self._on.start("worker", LLM_MODEL=MODEL, LLM_TIMEOUT_S="600", SKILL_TIMEOUT_S="600", WORKER_LANES="1")

    def stop(self) -> None:
        """Kill all that are left."""
        for worker in self._workers.values():
            worker.kill()


def measure(on: Stage, policy: str, kills: int) -> None:
    """Kill so many workers and print what was seen."""
    schedule, crew = on.start("schedule", STALE_RUNS=policy), Crew(on)
    known: list[float] = []
    again: list[float] = []
    while len(known) < kills:
        count = min(ABREAST, kills - len(known))
        crew.fill(2 * count)
        tickets = [receive(on.container) for _ in range(count)]
        victims = [crew.take(until(lambda ticket=ticket: holder(on, ticket.run_id))) for ticket in tickets]
        with ThreadPoolExecutor(count) as pool:
            times = list(pool.map(partial(kill, on, wait_for_new=policy == "retry"), victims, tickets))
        known += [time for time, _ in times]
        again += [time for _, time in times if time is not None]
        stop_runs(on)
    schedule.stop()
    crew.stop()
    print(f"{policy:12} kill to failed            {figures(known, 's')}")
    if again:
        print(f"{policy:12} kill to claimed again     {figures(again, 's')}", flush=True)


def holder(on: Stage, run_id: UUID) -> int | None:
    """Return the process that works on a step of this run now."""
    with on.container.sessions() as session:
        run = session.get_one(Run, run_id)
        return int(run.lease_owner.split(":")[1]) if run.lease_owner and run.cur_step else None


def kill(on: Stage, victim: Process, ticket: Received, *, wait_for_new: bool) -> tuple[float, float | None]:
    """Kill a worker at a random moment; return the seconds until its run has failed, and until a new one is claimed."""
    pause_up_to(RENEW_EVERY_S)
    killed = monotonic()
    victim.kill()
    until(lambda: status(on, Run.id == ticket.run_id) == RunStatus.FAILED)
    known = monotonic() - killed
    if not wait_for_new:
        return known, None
    until(lambda: status(on, Run.retry_from == ticket.run_id) == RunStatus.RUNNING)
    return known, monotonic() - killed


def status(on: Stage, which: object) -> str | None:
    """Return the status of one run, if it is there."""
    with on.container.sessions() as session:
        return session.scalar(select(Run.status).where(which))  # type: ignore[arg-type]


def stop_runs(on: Stage) -> None:
    """Cancel what still runs, and wait until the lanes are free again."""
    with on.container.transaction() as session:
        for run in session.scalars(select(Run).where(Run.status.in_(ACTIVE))).all():
            cancel_run(session, ticket_id=run.ticket_id, run_id=run.id, staff_id=on.staff_id)


def measure_many(on: Stage, policy: str, count: int) -> None:
    """Let the schedule meet `count` stale runs."""
    with on.container.transaction() as session:
        session.execute(text("TRUNCATE customers, tickets, runs CASCADE"))
        session.execute(text(STALE), {"count": count})
    with on.container.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    schedule = on.start("schedule", STALE_RUNS=policy)
    peak, done = [0.0], threading.Event()
    watch = threading.Thread(target=watch_memory, args=(schedule, peak, done), daemon=True)
    watch.start()
    began = monotonic()
    until(lambda: not stale(on), limit_s=1800, every_s=0.1)
    took = monotonic() - began
    done.set()
    watch.join()
    schedule.stop()
    print(
        f"{policy:12} {count} stale runs at once: {took:.1f} s, schedule's memory at most {peak[0]:.0f} MB", flush=True
    )


def watch_memory(process: Process, peak: list[float], done: threading.Event) -> None:
    """Note the most that a process takes."""
    while not done.wait(0.1):
        peak[0] = max(peak[0], process.tree.pss_mb())


def stale(on: Stage) -> int:
    """Return how many runs have lost their worker and are not judged yet."""
    with on.container.sessions() as session:
        return session.scalars(select(func.count()).where(Run.status == "running", Run.lease_owner == "dead")).one()


def main() -> None:
    """Run both parts under both policies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="workers killed under each policy")
    parser.add_argument("--stale", type=int, default=10_000, help="runs that the schedule meets at once")
    parser.add_argument("--policy", choices=POLICIES, action="append", help="one policy only; may be given twice")
    parser.add_argument("--quick", action="store_true", help="one kill and 200 runs, to see that the bench works")
    given = parser.parse_args()
    policies = given.policy or POLICIES[-1 if given.quick else 0 :]
    kills, count = (1, 200) if given.quick else (given.kills, given.stale)
    # The planner by rules: it is the classifying step that waits for the model, not the planning of one.
    with stage(planner="rule", embedding_base_url="stub", run_timeout_ms=600_000) as on:
        print(f"{machine()}; lease {LEASE_S:.0f} s, renewed every {RENEW_EVERY_S:.0f} s")
        for policy in policies:
            measure(on, policy, kills)
        for policy in policies:
            measure_many(on, policy, count)


if __name__ == "__main__":
    main()
