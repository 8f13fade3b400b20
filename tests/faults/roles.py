"""What each process of an arena does: the product's own entry points, in a process that has just been forked."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Engine

import jobs.process
import jobs.schedule
import jobs.worker
from app.bootstrap import Container
from app.live.job_queue import KNOWLEDGE
from app.logs import configure_logging
from app.runs.recovery import enqueue_unclaimed
from jobs.runtime import RunRuntime
from tests.faults import scale
from tests.faults.desk import Desk
from tests.faults.mutants import put_in
from tests.faults.points import Points, watch_channel, watch_ledger, watch_transactions
from tests.faults.ports import build_agent
from tests.faults.script import Agent, Point
from tests.faults.warm import share

UNCLAIMED = "start runs that nobody claimed"
READY = b'{"ready": true}\n'


@dataclass(frozen=True, slots=True)
class Post:
    """What a process is told when it starts. It hears commands on one file, answers on another; what it hands over to
    the channel of replies it notes in `channel`."""

    role: str
    environment: dict[str, str]
    engine: Engine
    points: tuple[Point, ...]
    agent: Agent
    channel_repeats: bool
    run_timeout_ms: int
    mutant: str
    hears: int
    says: int
    log: int
    channel: int


def run(post: Post) -> None:
    """Be that process until a signal, or the end of what it hears. Called in a fork of the arena."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(post.log, 1)
    os.dup2(post.log, 2)
    sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.environ.update(post.environment)  # noqa: TID251 - how a process is told its settings
    os.environ["PGAPPNAME"] = f"{post.role}:{os.getpid()}"  # noqa: TID251 - libpq's; the witness knows us by it
    configure_logging()
    share(post.engine)
    scale.scale_times()
    put_in(post.mutant)
    _ROLES[post.role](post)


def _worker(post: Post) -> None:
    points = Points(post.points)
    watch_ledger(points)
    watch_channel(points, post.channel, repeats=post.channel_repeats)

    class Runtime(RunRuntime):
        def start(self) -> None:
            super().start()
            os.write(post.says, READY)

    jobs.worker.build_agent = lambda settings, _: build_agent(post.agent, points, settings)
    jobs.worker.RunRuntime = partial(Runtime, lease_s=scale.LEASE_S, renew_every_s=scale.RENEW_EVERY_S)
    jobs.worker.main([queue for queue in jobs.worker.ORDER if queue != KNOWLEDGE])


def _web(post: Post) -> None:
    watch_transactions(Points(post.points))
    parts = jobs.process.container()
    desk = Desk(parts, post.run_timeout_ms)
    os.write(post.says, READY)
    with os.fdopen(post.hears) as commands:
        for line in commands:
            os.write(post.says, json.dumps(desk.do(json.loads(line))).encode() + b"\n")


def _sweeper(post: Post) -> None:
    parts = jobs.process.container()
    os.write(post.says, READY)
    jobs.schedule.run_schedule(parts, threading.Event(), _table())


def _table() -> tuple[jobs.schedule.Periodic, ...]:
    """The product's own table, each row often; the one whose patience is an argument gets less of it."""
    rows = [replace(row, every_s=scale.SWEEP_EVERY_S) for row in jobs.schedule.PERIODIC if "documents" not in row.name]
    assert any(row.name == UNCLAIMED for row in rows)
    return tuple(replace(row, work=_enqueue_unclaimed) if row.name == UNCLAIMED else row for row in rows)


def _enqueue_unclaimed(parts: Container) -> None:
    enqueue_unclaimed(parts.transaction, parts.queue, older_than=scale.UNCLAIMED_AFTER)


_ROLES: dict[str, Callable[[Post], None]] = {"worker": _worker, "web": _web, "sweeper": _sweeper}
