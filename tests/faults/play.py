"""Performs a schedule: its timeline of actions and faults, then the end of all faults, then rest within a bound."""

import select
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.clock import monotonic
from app.runs.lifecycle import FINAL
from tests.faults import scale
from tests.faults.commands import Commands
from tests.faults.crew import Crew
from tests.faults.invariants import WAITS
from tests.faults.script import OF_PEOPLE, OF_SERVERS, Action, Schedule, What
from tests.faults.servers import Servers

LOOK_EVERY_S = 0.03
READY_LIMIT_S = 30.0
_RUNS = """
SELECT i.key, r.status, r.retry_at IS NOT NULL AS retries,
       (SELECT count(*) FROM steps WHERE run_id = r.id) AS steps
  FROM runs r LEFT JOIN intake_keys i ON i.ticket_id = r.ticket_id AND i.message_id IS NULL ORDER BY r.id
"""
_UNSETTLED = """
SELECT (SELECT count(*) FROM deliveries WHERE state IN ('held', 'sending'))
     + (SELECT count(*) FROM threads WHERE published_seq < last_seq) AS count
"""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the database: the runs of each ticket, oldest first, and what else still moves."""

    runs: Mapping[str, list[dict[str, Any]]]
    unsettled: int

    @property
    def settled(self) -> bool:
        """Whether nothing moves any more by itself."""
        every = [run for runs in self.runs.values() for run in runs]
        return not self.unsettled and all(
            (run["status"] in FINAL and not run["retries"]) or run["status"] in WAITS for run in every
        )


class Play:
    """One performance of a schedule on an arena's servers."""

    def __init__(self, schedule: Schedule, servers: Servers, crew: Crew) -> None:
        self._schedule = schedule
        self._servers = servers
        self._crew = crew
        self.commands = Commands(crew)
        crew.on_death = self.commands.died
        self._pending = list(schedule.actions)
        self._since = 0.0
        self._looked = Look({}, 1)
        self._look_at = 0.0
        self._calm_looks = 0
        self.violations: list[str] = []

    def perform(self) -> None:
        """Do everything and come to rest; `violations` says if it could not."""
        self._crew.start()
        self._go_on(lambda: self._crew.whole, READY_LIMIT_S, "the processes did not start")
        self._since = monotonic()
        while self._pending:
            self._tick()
            self._do_what_is_due()
        if self._schedule.in_order:  # what comes by itself is waited for
            self._go_on(self._at_rest, scale.SETTLE_LIMIT_S, "it did not come to rest by itself")
        self._servers.heal()
        self._crew.heal()
        if not self.violations:
            self._go_on(self._at_rest, scale.SETTLE_LIMIT_S, "it did not come to rest")

    def _at_rest(self) -> bool:
        return self._calm_looks >= 2

    def _go_on(self, done: Callable[[], bool], limit_s: float, problem: str) -> None:
        started = monotonic()
        while not done():
            if monotonic() > max(started, self._servers.postgres_back_at) + limit_s:
                self.violations.append(f"{problem} within {limit_s} s")
                return
            self._tick()

    def _tick(self) -> None:
        self._crew.look_after()
        self.commands.serve()
        self._servers.look_after()
        if monotonic() >= self._look_at:
            nobody_acts = self._crew.whole and not self.commands.open
            self._looked = self._look()
            self._calm_looks = self._calm_looks + 1 if nobody_acts and self._looked.settled else 0
            self._look_at = monotonic() + LOOK_EVERY_S
        heard = [web.listens for web in self._crew.of("web")]
        select.select(heard, [], [], LOOK_EVERY_S / 3)

    def _look(self) -> Look:
        runs: dict[str, list[dict[str, Any]]] = {}
        for row in self._servers.ask(_RUNS):
            runs.setdefault(row["key"], []).append(row)
        return Look(runs, self._servers.ask(_UNSETTLED)[0]["count"])

    def _do_what_is_due(self) -> None:
        for action in self._pending[: 1 if self._schedule.in_order else None]:
            passed = monotonic() - self._since - action.at
            if passed >= 0 and (not action.when or self._holds(action) or passed > action.patience):
                self._pending.remove(action)
                self._do(action)
                self._since = monotonic() if self._schedule.in_order else self._since
                self._look_at = 0.0

    def _holds(self, action: Action) -> bool:
        kind, _, number = action.when.partition(":")
        runs = self._looked.runs.get(f"ticket-{action.ticket}", [])
        newest: dict[str, Any] = runs[-1] if runs else {"status": "", "steps": 0}
        return {
            "waiting": newest["status"] in WAITS,
            "ended": newest["status"] in FINAL,
            "running": newest["status"] == "running",
            "steps": newest["steps"] >= int(number or 0),
            "runs": len(runs) >= int(number or 0),
            "frozen": self._crew.frozen >= int(number or 1),
            "answered": not self.commands.open,
            "settled": self._looked.settled and not self.commands.open,
        }[kind]

    def _do(self, action: Action) -> None:
        self._calm_looks = 0
        if action.what in OF_PEOPLE:
            self.commands.give(action)
            self.commands.serve()
        elif action.what in OF_SERVERS:
            self._to_servers(action)
        else:
            self._to_crew(action)

    def _to_servers(self, action: Action) -> None:
        servers = self._servers
        match action.what:
            case What.FLUSH_VALKEY:
                servers.flush_valkey()
            case What.VALKEY_AWAY:
                servers.take_valkey_away(action.lasts)
            case What.VALKEY_HANGS:
                servers.hang_valkey(action.lasts)
            case What.RESTART_POSTGRES | What.CRASH_POSTGRES:
                servers.restart_postgres(crash=action.what == What.CRASH_POSTGRES)

    def _to_crew(self, action: Action) -> None:
        crew = self._crew
        awake = [actor for actor in crew.of("worker") if not actor.frozen]
        one = [awake[action.actor % len(awake)]] if awake else []
        match action.what:
            case What.KILL_WORKERS:
                crew.kill(*awake)
            case What.KILL_WORKER:
                crew.kill(*one)
            case What.KILL_WEB:
                crew.kill(*crew.of("web")[action.actor : action.actor + 1])
            case What.KILL_SWEEPER:
                crew.kill(*crew.of("sweeper"))
            case What.WAKE_WORKER:
                for actor in crew.of("worker")[action.actor : action.actor + 1]:
                    actor.wake()
            case What.STOP_WORKER:
                crew.stop(*one)
            case What.FREEZE_WORKER:
                crew.freeze(*one, for_s=action.lasts)
