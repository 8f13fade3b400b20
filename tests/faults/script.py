"""What a schedule is: plain data, drawn from a seed or written by a test, sent to an arena as JSON."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tests.faults.scale import LEASE_S


class What(StrEnum):
    """What happens: people and customers first, then faults."""

    TICKET = "ticket"
    MESSAGE = "message"
    APPROVE = "approve"
    CANCEL = "cancel"
    REGENERATE = "regenerate"
    MANUAL = "manual"
    ESCALATE = "escalate"
    STATUS = "status"
    CLASS = "class"
    STORM = "storm"

    KILL_WORKER = "kill_worker"
    KILL_WORKERS = "kill_workers"
    STOP_WORKER = "stop_worker"
    FREEZE_WORKER = "freeze_worker"
    WAKE_WORKER = "wake_worker"
    KILL_WEB = "kill_web"
    KILL_SWEEPER = "kill_sweeper"
    FLUSH_VALKEY = "flush_valkey"
    VALKEY_AWAY = "valkey_away"
    VALKEY_HANGS = "valkey_hangs"
    RESTART_POSTGRES = "restart_postgres"
    CRASH_POSTGRES = "crash_postgres"


OF_PEOPLE = frozenset(list(What)[: list(What).index(What.KILL_WORKER)])
"""Done by a web process; all else is done by the arena, to its processes or its servers."""
OF_SERVERS = frozenset(list(What)[list(What).index(What.FLUSH_VALKEY) :])
_FROZEN = ConfigDict(frozen=True, extra="forbid")


class Point(BaseModel):
    """A fault that strikes a process where it passes `place` for the nth time, see `points`."""

    model_config = _FROZEN

    place: str
    side: Literal["before", "after"] = "before"
    nth: int = 1
    fault: Literal["die", "freeze", "lose_answer", "hang", "crash", "refuse", "break"] = "die"


class Action(BaseModel):
    """One thing that happens `at` seconds after the start, or as soon as `when` holds too, but within `patience` s.

    `when` is "waiting" (the ticket's newest run waits for a person), "steps:N" (that run has begun N steps), "runs:N"
    (the ticket has N runs), "running" or "ended" (its newest run is), "frozen:N" (so many processes are, or one),
    "answered" (all commands), "settled".
    """

    model_config = _FROZEN

    what: What
    at: float = 0.0
    when: str = ""
    patience: float = 1.5
    ticket: int = 0
    actor: int = 0
    key: str = ""
    text: str = ""
    lasts: float = 0.0


class Agent(BaseModel):
    """How the agent of all workers behaves; with `model` it asks the stub, whose knobs ride on that name."""

    model_config = _FROZEN

    delay_ms: int = 5
    classify_failures: int = 0
    insufficient: int = 0
    refuses: bool = False
    model: str = ""


class Schedule(BaseModel):
    """Everything that is done in one go. `worker_points[n]` are the points of the nth worker that is started.

    Where not `channel_repeats`, a reply that was handed over twice would reach the customer twice.

    Who freezes at a point wakes after `frozen_for_s`, by which time its lease has been swept.
    `in_order`: each action waits for the one before, its `at` counts from there, and at the end all must come to rest
    before faults are called off.
    """

    model_config = _FROZEN

    seed: int = 0
    name: str = ""
    actions: tuple[Action, ...]
    in_order: bool = False
    workers: int = 2
    webs: int = 1
    worker_points: tuple[tuple[Point, ...], ...] = ()
    web_points: tuple[tuple[Point, ...], ...] = ()
    agent: Agent = Agent()
    channel_repeats: bool = True
    stale_runs: Literal["mark_failed", "retry"] = "mark_failed"
    settings: dict[str, str] = {}
    run_timeout_ms: int = 5_000
    frozen_for_s: float = 2 * LEASE_S
    mutant: str = ""

    def does(self, *whats: What) -> bool:
        """Say whether any of these happens."""
        return any(action.what in whats for action in self.actions)

    def meets(self, fault: str) -> bool:
        """Say whether a process may meet this fault at a point."""
        return any(point.fault == fault for points in self.worker_points + self.web_points for point in points)


class TicketStory(BaseModel):
    """How a ticket came out: `runs` as "status[:code]", oldest first, `events` by type, in order."""

    status: str
    runs: list[str]
    origins: list[str]
    events: list[str]
    deliveries: list[str]
    messages: list[str]
    deaths: list[int]


class Report(BaseModel):
    """What an arena says of a schedule. No `violations`: all held; else each begins with the name of an invariant."""

    seed: int
    name: str = ""
    mutant: str = ""
    violations: list[str] = []
    seconds: float = 0.0
    tickets: list[TicketStory] = []
    answers: list[str] = []
    log: str = ""
    """What the processes wrote, where something was violated."""
