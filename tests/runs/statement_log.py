"""What PostgreSQL itself says that it executed: its log, read back."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, text

_LINE = re.compile(
    r"^\S+ \S+ \S+ \[(?P<pid>\d+)\] LOG:  (?:statement|execute [^:]*): (?P<sql>(?:.|\n\t)*)", re.MULTILINE
)
_WRITES = re.compile(r"\b(INSERT INTO|UPDATE|DELETE FROM)\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """One executed statement and the connection that sent it."""

    pid: int
    sql: str

    @property
    def writes(self) -> bool:
        """Whether it changes rows (or locks them for a change)."""
        return _WRITES.search(self.sql) is not None


@contextmanager
def logged_statements(engine: Engine, var_dir: Path) -> Iterator[list[Statement]]:
    """Log the statements of connections opened inside; the list is filled at the end, without the log's own."""
    log = var_dir / "postgres" / "server.log"
    start = log.stat().st_size
    _set(engine, "SET log_statement = 'all'")
    statements: list[Statement] = []
    try:
        yield statements
    finally:
        _set(engine, "RESET log_statement")
    with log.open(encoding="utf-8") as file:
        file.seek(start)
        statements += [Statement(int(found["pid"]), found["sql"]) for found in _LINE.finditer(file.read())]


def writing_commits(statements: list[Statement]) -> int:
    """Return how many commits wrote something: a statement outside a transaction, or a transaction with a write."""
    commits, open_pids, wrote = 0, set[int](), set[int]()
    for statement in statements:
        word = statement.sql.split(None, 1)[0].upper()
        if word == "BEGIN":
            open_pids.add(statement.pid)
        elif word in ("COMMIT", "ROLLBACK"):
            commits += word == "COMMIT" and statement.pid in wrote
            open_pids.discard(statement.pid)
            wrote.discard(statement.pid)
        elif statement.writes and statement.pid in open_pids:
            wrote.add(statement.pid)
        elif statement.writes:
            commits += 1
    return commits


def _set(engine: Engine, change: str) -> None:
    with engine.begin() as connection:
        name = connection.scalar(text("SELECT current_database()"))
        connection.execute(text(f'ALTER DATABASE "{name}" {change}'))
