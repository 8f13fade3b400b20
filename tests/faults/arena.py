"""An arena, a process with servers of its own: `python -m tests.faults.arena FOLDER POSTGRES_FOLDER URL MODEL_URL`.

Reads schedules from its input, a line of JSON each, and writes a report for each. It never starts a thread, so that it
may fork; what the forked processes need is imported here, once.
"""

import gc
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import configure_mappers

from app.bootstrap import build_container
from app.clock import monotonic
from app.settings import Settings
from tests.faults import invariants, replies
from tests.faults.crew import Crew
from tests.faults.desk import make_staff
from tests.faults.play import Play
from tests.faults.records import people_are_on_record
from tests.faults.script import Report, Schedule
from tests.faults.servers import Servers
from tests.faults.story import Story
from tests.faults.warm import warm_up

LOG_CHARS = 12_000


class Arena:
    """Performs one schedule after another."""

    def __init__(self, folder: Path, postgres_folder: Path, database_url: str, model_url: str) -> None:
        self._folder = folder
        self._model_url = model_url
        self._servers = Servers(folder, postgres_folder, database_url)
        settings = Settings(_env_file=None, demo=True, database_url=database_url, redis_url=self._servers.redis_url)
        self._parts = build_container(settings)
        self._begin_anew()
        warm_up(self._parts)
        self._let_go()

    def close(self) -> None:
        """Stop the servers."""
        self._servers.close()

    def perform(self, schedule: Schedule) -> Report:
        """Perform a schedule on empty servers and say what did not hold."""
        started = monotonic()
        servers = self._servers
        self._begin_anew()
        self._let_go()
        deadlocks = servers.deadlocks()
        log_path, channel_path = self._folder / "processes.log", self._folder / "channel.log"
        log, channel = _empty_file(log_path), _empty_file(channel_path)
        crew = Crew(schedule, self._environment(schedule), self._parts.engine, log, channel)
        play = Play(schedule, servers, crew)
        try:
            play.perform()
        finally:
            crew.end()
            servers.heal()
            os.close(log)
            os.close(channel)
        story = Story(
            servers,
            servers.deadlocks() - deadlocks,
            handed_over=channel_path.read_text().splitlines(),
            channel_repeats=schedule.channel_repeats,
        )
        violations = [*_named("comes_to_rest", play.violations), *self._judge(schedule, play, story)]
        return Report(
            seed=schedule.seed,
            name=schedule.name,
            mutant=schedule.mutant,
            violations=violations,
            seconds=monotonic() - started,
            tickets=story.told(),
            answers=[command.told() for command in play.commands.all],
            log=log_path.read_text(errors="replace")[-LOG_CHARS:] if violations else "",
        )

    def _judge(self, schedule: Schedule, play: Play, story: Story) -> Iterator[str]:
        """Yield what did not hold, each after the name of what should have."""
        for holds in (*invariants.ALWAYS, *replies.ALWAYS, people_are_on_record):
            yield from _named(holds.__name__, holds(story))
        for complaint in story.complaints:
            yield from _named(complaint["rule"], [complaint["text"]])
        restarted = self._servers.postgres_was_restarted()
        if not self._servers.valkey_was_lost:
            published = invariants.the_newest_event_is_published(story)
            yield from _named("the_newest_event_is_published", published)
        answered = invariants.what_was_answered_is_true(story, play.commands.all, database_went_away=restarted)
        yield from _named("what_was_answered_is_true", answered)
        if not schedule.meets("crash"):
            lost = restarted or schedule.meets("lose_answer")
            known = invariants.runs_fail_for_a_known_reason(story, database_went_away=lost)
            yield from _named("runs_fail_for_a_known_reason", known)

    def _begin_anew(self) -> None:
        """Empty the servers and make the staff; once more after a restart of PostgreSQL, which may be anybody's."""
        try:
            self._servers.empty()
            make_staff(self._parts)
        except OperationalError:
            self._servers.empty()
            make_staff(self._parts)

    def _let_go(self) -> None:
        """Close the arena's own connections, which no fork may share."""
        self._parts.engine.dispose()
        self._parts.redis.connection_pool.disconnect()

    def _environment(self, schedule: Schedule) -> dict[str, str]:
        return {
            "DEMO": "1",
            "DATABASE_URL": self._servers.database_url,
            "REDIS_URL": self._servers.redis_url,
            "VAR_DIR": str(self._folder),
            "WORKER_LANES": "4",
            "MESSAGE_WINDOW_S": "0.1",
            "MESSAGE_WAIT_MAX_S": "0.3",
            "STALE_RUNS": schedule.stale_runs,
            "LLM_BASE_URL": self._model_url if schedule.agent.model else "",
            "LLM_MODEL": schedule.agent.model,
            "LLM_TIMEOUT_S": "0.5",
            **schedule.settings,
        }


def _empty_file(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)


def _named(rule: str, texts: Iterable[str]) -> Iterator[str]:
    return (f"{rule}: {text}" for text in texts)


def main(folder: str, postgres_folder: str, database_url: str, model_url: str) -> None:
    """Perform schedules until the end of the input."""
    # Whatever writes to the standard output writes to the log; the reports have the real one to themselves.
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    configure_mappers()
    arena = Arena(Path(folder), Path(postgres_folder), database_url, model_url)
    gc.freeze()  # What is there now is never collected: forks would copy the pages that a collection touches.
    try:
        for line in sys.stdin:
            report = arena.perform(Schedule.model_validate_json(line))
            reports.write(report.model_dump_json() + "\n")
    finally:
        arena.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
