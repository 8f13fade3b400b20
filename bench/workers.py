"""Measures what runs cost a worker: `python -m bench.workers [--runs 1 8 32 64] [--think 0 2] [--quick]`.

Worker processes as the Procfile starts them, answerable tickets that wait in the queue, and a stub model that answers
each of a run's five calls after `--think` seconds. Per arrangement: runs per second, how long one run takes beside what
its model takes, CPU per run, and the most memory of the worker processes (PSS, from /proc/PID/smaps_rollup) and the
most connections to PostgreSQL that there were. `--embeddings stub` leaves the local embedding model out.
"""

import argparse
import statistics
import threading
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import func, select, text

from app.clock import monotonic
from app.db.session import transaction
from app.db.signals import Job, JobName
from app.ids import new_id
from app.intake.fields import parse_new_ticket
from app.intake.service import receive_ticket
from app.runs.models import Run, RunStatus
from bench.stage import FIELDS, Process, Stage, at_share, machine, stage, until

CALLS = 5
"""Model calls of a run: three plans, the class, the draft."""
AT_LEAST = 100
"""Runs measured with a model that does not think; with one that does, ROUNDS of what goes on at a time."""
ROUNDS = 2
AIM = "aim: 64 runs that wait for their model on 2 cores and 1 GB of worker memory"
HEAD = "processes at a time think s  runs  runs/s  median s   p95 s model s CPU ms/run  CPU %  PSS MB  PG conn  drafts"
BUSY = (RunStatus.CREATED, RunStatus.RUNNING, RunStatus.RETRYING)


@dataclass(slots=True)
class Peak:
    """The most that was seen while workers worked."""

    memory_mb: float = 0.0
    connections: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def watch(self, on: Stage, workers: list[Process]) -> None:
        """Look until done."""
        while not self.done.wait(0.25):
            self.memory_mb = max(self.memory_mb, sum(worker.tree.pss_mb() for worker in workers))
            with on.container.sessions() as session:
                count = session.scalar(
                    text("SELECT count(*) FROM pg_stat_activity WHERE backend_type='client backend'")
                )
            self.connections = max(self.connections, count or 0)


def measure(on: Stage, processes: int, at_a_time: int, think_s: float, runs: int) -> None:
    """Measure one arrangement and print its line."""
    lanes = -(-at_a_time // processes)
    model = f"stub;delay={think_s}"
    workers = [on.start("worker", WORKER_LANES=str(lanes), LLM_MODEL=model) for _ in range(processes)]
    drive(on, prepare(on, at_a_time))  # warms them
    run_ids, peak = prepare(on, runs), Peak()
    watcher = threading.Thread(target=peak.watch, args=(on, workers), daemon=True)
    watcher.start()
    cpu_s, began = sum(worker.tree.cpu_s() for worker in workers), monotonic()
    drive(on, run_ids)
    took, cpu_s = monotonic() - began, sum(worker.tree.cpu_s() for worker in workers) - cpu_s
    peak.done.set()
    watcher.join()
    for worker in workers:
        worker.stop()
    times, drafts = outcome(on, run_ids)
    print(
        f"{processes:9} {at_a_time:9} {think_s:7.1f} {runs:5} {runs / took:7.2f} {statistics.median(times):9.2f} "
        f"{at_share(times, 0.95):7.2f} {CALLS * think_s:7.1f} {1000 * cpu_s / runs:10.0f} {100 * cpu_s / took:6.0f} "
        f"{peak.memory_mb:7.0f} {peak.connections:8} {drafts:7}",
        flush=True,
    )


def prepare(on: Stage, count: int) -> list[UUID]:
    """Take tickets in without telling a worker; returns their runs."""
    new = parse_new_ticket(FIELDS)
    with transaction(on.container.sessions, lambda _: None) as session:
        return [
            receive_ticket(session, source="bench", key=str(new_id()), new=new, plan=on.container.run_plan()).run_id
            for _ in range(count)
        ]


def drive(on: Stage, run_ids: list[UUID]) -> None:
    """Tell the workers of these runs and wait until none is left to do."""
    for run_id in run_ids:
        on.container.queue.enqueue(Job(JobName.EXECUTE_RUN, run_id))
    until(lambda: not busy(on), limit_s=600, every_s=0.05)


def busy(on: Stage) -> int:
    """Return how many runs are not through."""
    with on.container.sessions() as session:
        return session.scalars(select(func.count()).where(Run.status.in_(BUSY))).one()


def outcome(on: Stage, run_ids: list[UUID]) -> tuple[list[float], int]:
    """Return the seconds that each run took from its claim to its end, and how many have a draft."""
    with on.container.sessions() as session:
        runs = session.scalars(select(Run).where(Run.id.in_(run_ids))).all()
    times = [(run.moved_at - run.started_at).total_seconds() for run in runs if run.moved_at and run.started_at]
    return times, sum(run.status == RunStatus.WAITING_FOR_REVIEW for run in runs)


def main() -> None:
    """Run every arrangement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", type=int, nargs="+", default=[1, 8, 32, 64], help="runs at a time, over all processes"
    )
    parser.add_argument("--think", type=float, nargs="+", default=[0, 2], help="seconds that the model takes to answer")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--embeddings", choices=("local", "stub"), default="local")
    parser.add_argument("--quick", action="store_true", help="one short arrangement, to see that the bench works")
    given = parser.parse_args()
    if given.quick:
        given.runs, given.think, given.processes = [8], [0], [1]
    with stage(embedding_base_url="stub" if given.embeddings == "stub" else "") as on:
        on.add_documents()
        print(f"{machine()}; {given.embeddings} embeddings; {AIM}")
        print(HEAD)
        for think_s in given.think:
            for processes in given.processes:
                for at_a_time in (count for count in given.runs if count >= processes):
                    runs = ROUNDS * at_a_time if think_s else max(AT_LEAST, ROUNDS * at_a_time)
                    measure(on, processes, at_a_time, think_s, runs)


if __name__ == "__main__":
    main()
