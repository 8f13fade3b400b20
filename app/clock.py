"""The one source of the current time in Python code. Rows take their times from the database clock instead."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds of a clock that never goes back, for durations."""
    return time.monotonic()
