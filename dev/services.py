"""The settings of this machine, with the services behind them running."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address

from pydantic import ValidationError
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from app.embedded import EmbeddedPostgres, EmbeddedServer, EmbeddedValkey
from app.settings import SecretMissing, Settings
from dev.signals import uninterrupted


class CannotStart(Exception):
    """One line for a person."""


def read_settings() -> Settings:
    """Return the settings; a trial without SECRET_KEY is demo mode. Raises CannotStart naming what is wrong."""
    try:
        return _settings_or_none() or _trial_settings()
    except ValidationError as problem:
        wrong = "; ".join(": ".join([*(str(part).upper() for part in e["loc"]), e["msg"]]) for e in problem.errors())
        raise CannotStart(f"A setting is wrong. {wrong}") from None


def _settings_or_none() -> Settings | None:
    """Return the settings, or None when nothing but SECRET_KEY is missing. Raises ValidationError."""
    try:
        return Settings()
    except ValidationError as problem:
        if any(isinstance(error.get("ctx", {}).get("error"), SecretMissing) for error in problem.errors()):
            return None
        raise


def _trial_settings() -> Settings:
    """Return the settings of a demo that nobody asked for by name: for this machine only. Raises CannotStart."""
    os.environ["DEMO"] = "1"
    settings = Settings()
    if not only_this_machine(settings.host):
        raise CannotStart(
            f"HOST={settings.host} can be reached from other machines, and without SECRET_KEY this is a demo whose "
            "passwords everybody knows. Set SECRET_KEY, or say that you want that: make run DEMO=1 HOST=..."
        )
    return settings


def only_this_machine(host: str) -> bool:
    """Say whether a server bound to `host` is out of reach for other machines; a name that can't be resolved is."""
    with suppress(OSError):
        found = socket.getaddrinfo(host or None, 0, flags=socket.AI_PASSIVE)
        return all(ip_address(address[4][0]).is_loopback for address in found)
    return True


@dataclass(frozen=True, slots=True)
class Services:
    """What runs, be it ours or named in the settings."""

    settings: Settings
    """With both URLs."""
    embedded: tuple[EmbeddedServer, ...]


@contextmanager
def services_for(settings: Settings, *, leave_running: bool = False) -> Iterator[Services]:
    """Start the embedded server for each URL that is empty; stop them at the end. Raises ServiceFailed or OSError.

    `leave_running` lets servers that were there before go on, for a command beside a running launcher.
    """
    with ExitStack() as held:
        needed: dict[str, EmbeddedServer] = {}
        if not settings.database_url:
            needed["database_url"] = EmbeddedPostgres(settings.var_dir)
        if not settings.redis_url:
            needed["redis_url"] = EmbeddedValkey(settings.var_dir)
        urls = {name: _start(server, held, leave_running=leave_running) for name, server in needed.items()}
        settings = settings.model_copy(update=urls)
        _check_redis(settings.redis_url)
        yield Services(settings, tuple(needed.values()))


def _start(service: EmbeddedServer, held: ExitStack, *, leave_running: bool) -> str:
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
