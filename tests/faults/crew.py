"""The processes of an arena. Each is a fork of it, so that starting one costs milliseconds, and is started again when
it dies, as a supervisor would. The arena has no threads, which makes its forks safe."""

import json
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine

from app.clock import monotonic
from tests.faults import roles, scale
from tests.faults.script import Point, Schedule


class Actor:
    """One process, as its parent sees it."""

    def __init__(self, role: str, place: int, armed: bool, pid: int, hears: int, says: int) -> None:
        self.role = role
        self.place = place
        self.armed = armed
        self.pid = pid
        self.ready = False
        self.wakes_at = 0.0
        self._hears, self.listens = hears, says
        self._heard = b""
        os.set_blocking(says, False)

    @property
    def frozen(self) -> bool:
        """Whether it has been stopped and will be woken."""
        return self.wakes_at > 0

    def tell(self, command: dict[str, Any]) -> None:
        """Give it a command; one that has just died does not get it."""
        with suppress(BrokenPipeError):
            os.write(self._hears, json.dumps(command).encode() + b"\n")

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield what it has said since."""
        with suppress(BlockingIOError):
            while piece := os.read(self.listens, 65536):
                self._heard += piece
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            said = json.loads(line)
            if said.get("ready"):
                self.ready = True
            else:
                yield said

    def signal(self, number: int) -> None:
        """Send it a signal; it is our child and not waited for yet, so the pid is its own."""
        os.kill(self.pid, number)

    def wake(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)
        self.wakes_at = 0.0

    def close(self) -> None:
        """Close our ends of its pipes."""
        os.close(self._hears)
        os.close(self.listens)


class Crew:
    """All processes of one schedule."""

    def __init__(self, schedule: Schedule, environment: dict[str, str], engine: Engine, log: int, channel: int) -> None:
        self._schedule = schedule
        self._environment = environment
        self._engine = engine
        self._log = log
        self._channel = channel
        self._started = {"worker": 0, "web": 0, "sweeper": 0}
        self._due: list[tuple[float, str, int]] = []
        self._healed = False
        self.webs = schedule.webs
        self.actors: list[Actor] = []
        self.on_death: Callable[[Actor], None] = lambda _: None

    def start(self) -> None:
        """Start everyone."""
        for place in range(self._schedule.webs):
            self._spawn("web", place)
        for place in range(self._schedule.workers):
            self._spawn("worker", place)
        self._spawn("sweeper", 0)

    def of(self, role: str) -> list[Actor]:
        """Return the living of that role, by their places."""
        return sorted((actor for actor in self.actors if actor.role == role), key=lambda actor: actor.place)

    @property
    def whole(self) -> bool:
        """Whether everyone is there, awake and ready."""
        return not self._due and all(actor.ready and not actor.frozen for actor in self.actors)

    @property
    def frozen(self) -> int:
        """How many are frozen."""
        return sum(actor.frozen for actor in self.actors)

    def kill(self, *actors: Actor) -> None:
        """Kill them at once."""
        for actor in actors:
            actor.signal(signal.SIGKILL)

    def stop(self, *actors: Actor) -> None:
        """Ask them to end, as a deploy does."""
        for actor in actors:
            actor.signal(signal.SIGTERM)

    def freeze(self, *actors: Actor, for_s: float) -> None:
        """Stop them for a while."""
        for actor in actors:
            actor.signal(signal.SIGSTOP)
            actor.wakes_at = monotonic() + for_s

    def look_after(self) -> None:
        """Notice who died or froze by itself, wake and restart who is due."""
        for actor in list(self.actors):
            self._look_at(actor)
        for due in [due for due in self._due if due[0] <= monotonic()]:
            self._due.remove(due)
            self._spawn(*due[1:])

    def heal(self) -> None:
        """Let no process meet a fault from now on. Those that still have points to meet are replaced."""
        self._healed = True
        for actor in self.actors:
            if actor.armed:
                actor.signal(signal.SIGTERM if actor.role == "worker" and not actor.frozen else signal.SIGKILL)

    def end(self) -> None:
        """Kill everyone and wait for them."""
        self._due.clear()
        for actor in self.actors:
            actor.signal(signal.SIGKILL)
        for actor in self.actors:
            os.waitpid(actor.pid, 0)
            actor.close()
        self.actors.clear()

    def _look_at(self, actor: Actor) -> None:
        pid, status = os.waitpid(actor.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            actor.wakes_at = actor.wakes_at or monotonic() + self._schedule.frozen_for_s
        elif pid:
            self.on_death(actor)
            self.actors.remove(actor)
            actor.close()
            self._due.append((monotonic() + scale.RESTART_AFTER_S, actor.role, actor.place))
        elif actor.frozen and actor.wakes_at <= monotonic():
            actor.wake()
        elif not actor.ready and actor.role != "web":
            list(actor.answers())  # the only thing that it says is that it is ready

    def _points_of(self, role: str, number: int) -> tuple[Point, ...]:
        given = {"worker": self._schedule.worker_points, "web": self._schedule.web_points}.get(role, ())
        return () if self._healed or number >= len(given) else given[number]

    def _spawn(self, role: str, place: int) -> None:
        points = self._points_of(role, self._started[role])
        self._started[role] += 1
        hears, tells = os.pipe()
        listens, says = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become(role, points, hears, says)
        os.close(hears)
        os.close(says)
        self.actors.append(Actor(role, place, bool(points), pid, tells, listens))

    def _become(self, role: str, points: tuple[Point, ...], hears: int, says: int) -> None:
        """Be the new process; never returns."""
        code = 1
        try:
            for other in self.actors:
                other.close()
            schedule = self._schedule
            post = roles.Post(
                role,
                self._environment,
                self._engine,
                points,
                schedule.agent,
                schedule.channel_repeats,
                schedule.run_timeout_ms,
                schedule.mutant,
                hears,
                says,
                self._log,
                self._channel,
            )
            roles.run(post)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
