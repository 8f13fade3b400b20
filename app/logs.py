"""Logging: one line an event, with the request, run or job it belongs to. Never ticket text, never secrets."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_context: ContextVar[str] = ContextVar("log_context", default="-")


class _WithContext(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.context = _context.get()
        return True


@contextmanager
def log_context(label: str) -> Iterator[None]:
    """Mark every line logged inside with `label`, for example `run=<id>`."""
    token = _context.set(label)
    try:
        yield
    finally:
        _context.reset(token)


def configure_logging(level: int = logging.INFO) -> None:
    """Send all logging to standard error in one format; called once by each entry point."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_WithContext())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s [%(context)s] %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("httpx", "httpx2", "httpcore2", "openai", "rq.worker"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
