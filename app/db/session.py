"""Engine, sessions and the one transaction that an entry point opens.

Services take the session and never commit. What others must be told is noted as signals (`signals.py`) and sent once,
after the commit, outside the transaction.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session, sessionmaker

from app.db.signals import Signals, take_signals

log = logging.getLogger(__name__)
LOCK_LIMIT_S = 10
"""So long a statement waits for a lock before it fails, and its transaction with it: longer than IDLE_LIMIT_S, after
which one who hangs lets go."""
IDLE_LIMIT_S = 5
"""So long a transaction may do nothing before PostgreSQL ends it. A process that hangs in one holds up the lease of the
run that it has locked, which outlasts this and the renewal after it (`app.runs.leases`)."""
OPTIONS = f"-c timezone=UTC -c lock_timeout={LOCK_LIMIT_S}s -c idle_in_transaction_session_timeout={IDLE_LIMIT_S}s"


def make_engine(url: str, *, pool_size: int = 10, overflow: int = 10) -> Engine:
    """Return an engine on PostgreSQL in UTC that notices dead connections, and neither waits nor hangs for ever.

    It keeps up to `pool_size` connections open, and opens up to `overflow` more while they are needed.
    Its errors name no parameters: errors are logged, and parameters are customers' words.
    """
    return create_engine(
        url,
        pool_size=pool_size,
        max_overflow=overflow,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"options": OPTIONS},
    )


def make_sessions(engine: Engine) -> sessionmaker[Session]:
    """Return the session factory of one process."""
    return sessionmaker(engine, expire_on_commit=False)


@contextmanager
def transaction(sessions: sessionmaker[Session], send: Callable[[Signals], None]) -> Iterator[Session]:
    """Open a session, commit at the end, roll back on any error; after the commit hand its signals to `send`.

    A `send` that fails is logged and undoes nothing: the sweeps make up for a lost signal.
    """
    with sessions() as session:
        with session.begin():
            yield session
        noted = take_signals(session)
    try:
        send(noted)
    except Exception:
        log.exception("signals were not sent; the sweep will make up for it")
