"""The servers of an arena: a database in the package's PostgreSQL, and a Valkey of its own. They go away and return."""

import fcntl
import os
import signal
from pathlib import Path

import psycopg
from psycopg import Connection
from psycopg.rows import DictRow, dict_row

from app.clock import monotonic
from app.embedded import EmbeddedPostgres
from tests.faults.witness import WATCH
from tests.support.own_valkey import OwnValkey
from tests.support.waiting import until

_EMPTY = """
DO $$ DECLARE name text; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR name IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
                 WHERE schemaname IN ('public', 'witness') AND tablename <> 'alembic_version'
    LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
END $$
"""
"""Rows are few: TRUNCATE, which makes new files for each table and index, would take a hundred times as long."""
_END_OTHERS = """
SELECT count(pg_terminate_backend(pid)) AS count FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Servers:
    """PostgreSQL is shared by all arenas, so its restart is everybody's fault; Valkey is not."""

    def __init__(self, folder: Path, postgres_folder: Path, database_url: str) -> None:
        self._folder = folder
        self._postgres_folder = postgres_folder
        self.database_url = database_url
        self._dsn = database_url.replace("+psycopg", "", 1)
        self._valkey = OwnValkey(folder)
        self._valkey_back_at = 0.0
        self._valkey_hangs = False
        self.valkey_was_lost = False
        self.postgres_back_at = 0.0
        self._valkey.start()
        self.redis = self._valkey.client()
        self._database = self._connect()
        self.ask(WATCH)
        self._started_at = self._postgres_start()

    @property
    def redis_url(self) -> str:
        """Where Valkey is, or was."""
        return self._valkey.url

    def close(self) -> None:
        """Stop what is ours."""
        self._database.close()
        self._valkey.stop()

    def ask(self, query: str) -> list[DictRow]:
        """Return the rows of a query; asked again after a restart, which may be anybody's."""
        try:
            return self._ask_once(query)
        except psycopg.OperationalError:
            self._database = self._connect()
            self.postgres_back_at = monotonic()
        return self._ask_once(query)

    def _ask_once(self, query: str) -> list[DictRow]:
        cursor = self._database.execute(query)
        return cursor.fetchall() if cursor.description else []

    def _connect(self) -> Connection[DictRow]:
        """Connect; PostgreSQL may be starting."""

        def connect() -> list[Connection[DictRow]]:
            try:
                return [psycopg.connect(self._dsn, autocommit=True, row_factory=dict_row, application_name="arena")]
            except psycopg.OperationalError:
                return []

        return until(connect, limit_s=60)[0]

    def empty(self) -> None:
        """Make everything as new."""
        self.ask(_EMPTY)
        self.redis.flushall()
        self.valkey_was_lost = False
        self._started_at = self._postgres_start()

    def postgres_was_restarted(self) -> bool:
        """Say whether anyone has restarted PostgreSQL since all was made new."""
        return self._postgres_start() != self._started_at

    def deadlocks(self) -> int:
        """Return how many deadlocks were broken in this database, once all connections but ours have gone and told."""
        until(lambda: not self._one(_END_OTHERS), limit_s=30)
        return self._one("SELECT deadlocks AS count FROM pg_stat_database WHERE datname = current_database()")

    def look_after(self) -> None:
        """Bring back what is due to come back."""
        if self._valkey_back_at and monotonic() >= self._valkey_back_at:
            self.heal()

    def heal(self) -> None:
        """Bring everything back now."""
        if self._valkey_back_at:
            if self._valkey_hangs:
                self._valkey.wake()
            else:
                self._valkey.start()
            self._valkey_back_at, self._valkey_hangs = 0.0, False

    def flush_valkey(self) -> None:
        """Wipe Valkey, unless it is away."""
        if not self._valkey_back_at:
            self.redis.flushall()
            self.valkey_was_lost = True

    def take_valkey_away(self, for_s: float) -> None:
        """Kill Valkey; it comes back empty."""
        if not self._valkey_back_at:
            self._valkey.stop()
            self._valkey_back_at, self.valkey_was_lost = monotonic() + for_s, True

    def hang_valkey(self, for_s: float) -> None:
        """Let Valkey take connections and answer nothing for a while."""
        if not self._valkey_back_at:
            self._valkey.hang()
            self._valkey_back_at, self._valkey_hangs = monotonic() + for_s, True

    def restart_postgres(self, *, crash: bool) -> None:
        """Restart PostgreSQL, in order or by a crash; one arena at a time."""
        postgres = EmbeddedPostgres(self._postgres_folder, durable=False)
        with (self._postgres_folder / "restart.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if crash:
                self.ask("CHECKPOINT")  # its recovery is not what is tested, and may take long
                pid_file = self._postgres_folder / "postgres" / "postmaster.pid"
                os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
                until(postgres.has_ended, limit_s=30)
            else:
                postgres.stop()
            postgres.start()

    def _postgres_start(self) -> object:
        return self.ask("SELECT pg_postmaster_start_time() AS at")[0]["at"]

    def _one(self, query: str) -> int:
        return int(self.ask(query)[0]["count"])
