"""Has the database itself note every move of a table's `status`, whoever makes it and however."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

_WITNESS = """
CREATE TABLE witnessed_moves (place bigserial, source text, target text);
CREATE FUNCTION witness_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO witnessed_moves (source, target) VALUES (OLD.status, NEW.status); RETURN NULL; END $$;
CREATE TRIGGER witness_move AFTER UPDATE OF status ON {table} FOR EACH ROW
  WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION witness_move();
"""
_NO_WITNESS = "DROP TRIGGER witness_move ON {table}; DROP FUNCTION witness_move(); DROP TABLE witnessed_moves"


@contextmanager
def witnessed(engine: Engine, table: str) -> Iterator[None]:
    """Note every move in the table until the end of the block."""
    with engine.begin() as connection:
        connection.execute(text(_WITNESS.format(table=table)))
    try:
        yield
    finally:
        with engine.begin() as connection:
            connection.execute(text(_NO_WITNESS.format(table=table)))


def moves_seen(session: Session) -> set[tuple[str, str]]:
    """Return the moves that were made, each as from and to."""
    rows = session.execute(text("SELECT DISTINCT source, target FROM witnessed_moves"))
    return {(source, target) for source, target in rows}
