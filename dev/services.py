"""The settings of this machine, with the services behind them running."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pydantic import ValidationError
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from app.embedded import EmbeddedPostgres, EmbeddedValkey
from app.settings import Settings
from dev.signals import uninterrupted


class CannotStart(Exception):
    """One line for a person."""


def read_settings() -> Settings:
    """Return the settings; a trial without SECRET_KEY is demo mode. Raises CannotStart naming what is wrong."""
    try:
        return Settings()
    except ValidationError:
        os.environ["DEMO"] = "1"
    try:
        return Settings()
    except ValidationError as problem:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in problem.errors())
        raise CannotStart(f"A setting is wrong. {wrong}") from None


@contextmanager
def services_for(settings: Settings, *, leave_running: bool = False) -> Iterator[Settings]:
    """Start the embedded service for each URL that is empty and give settings with both URLs; stop them at the end.

    `leave_running` lets servers that were there before go on, for a command beside a running launcher.
    """
    with ExitStack() as held:
        urls: dict[str, str] = {}
        if not settings.database_url:
            urls["database_url"] = _start(EmbeddedPostgres(settings.var_dir), held, leave_running=leave_running)
        if not settings.redis_url:
            urls["redis_url"] = _start(EmbeddedValkey(settings.var_dir), held, leave_running=leave_running)
        settings = settings.model_copy(update=urls)
        _check_redis(settings.redis_url)
        yield settings


def _start(service: EmbeddedPostgres | EmbeddedValkey, held: ExitStack, *, leave_running: bool) -> str:
    if not leave_running:
        say(f"Starting {service.name} ...")
        held.callback(service.stop)
    with uninterrupted():
        url = service.start()
    if leave_running and not service.taken_over:
        held.callback(service.stop)
    return url


def _check_redis(url: str) -> None:
    try:
        with Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client:
            client.ping()
    except (RedisError, ValueError) as problem:
        raise CannotStart(f"REDIS_URL does not answer: {problem}") from None


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)
