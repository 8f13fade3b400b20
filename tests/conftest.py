"""Services, container and client that all tests share. Everything is real: PostgreSQL, Valkey, Chromium.

Each pytest session starts servers of its own in a temporary folder, on Unix sockets, so that sessions never meet.
Tables are emptied after each test rather than rolled back: workers and the web use connections of their own.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from flask import Flask
from flask.testing import FlaskClient
from redis import Redis
from sqlalchemy import Engine, text

from app.bootstrap import Container, build_container
from app.db.session import make_engine
from app.embedded import EmbeddedServices, ServiceUrls
from app.runs import recovery
from app.settings import Settings
from app.staff.models import Role
from dev.browser import get_chromium
from dev.database import bring_up_to_date
from dev.translations import compile_catalogues
from tests.factories import PASSWORD, make_staff

if TYPE_CHECKING:
    from collections.abc import Generator

pytest_plugins = ["tests.support.model_server"]

Login = Callable[..., FlaskClient]


def pytest_configure() -> None:
    """Take the developer's own settings out of the environment: a test means the same everywhere. Compile texts."""
    for name in Settings.model_fields:
        os.environ.pop(name.upper(), None)  # noqa: TID251 - cleans what Settings would read
    compile_catalogues()
    recovery.SETTLED_AFTER = timedelta(0)  # the tests' PostgreSQL has just started, and no worker lived before it


@pytest.fixture(scope="session")
def var_dir() -> "Generator[Path]":
    """A folder of this pytest session, with a path short enough for sockets."""
    _clear_up_after_killed_sessions()
    folder = Path(tempfile.mkdtemp(prefix=f"dd-{os.getpid()}-"))
    yield folder
    shutil.rmtree(folder)


def _clear_up_after_killed_sessions() -> None:
    """Stop the servers of pytest sessions that were killed before they could do so themselves."""
    for folder in Path(tempfile.gettempdir()).glob("dd-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and folder.stat().st_uid == os.geteuid() and not psutil.pid_exists(int(pid)):
            EmbeddedServices(folder).stop()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The Chromium that browser tests drive; got by `make test` when there is none. No browser is an error, no skip."""
    return get_chromium()


@pytest.fixture(scope="session")
def services(var_dir: Path) -> Iterator[ServiceUrls]:
    """PostgreSQL, migrated to the newest schema, and Valkey; both end with the session."""
    embedded = EmbeddedServices(var_dir, durable=False)
    try:
        urls = embedded.start()
        bring_up_to_date(urls.database_url)
        yield urls
    finally:
        embedded.stop()


@pytest.fixture(scope="session")
def settings(services: ServiceUrls, var_dir: Path) -> Settings:
    """Demo settings on the test services, offline; change one by `settings.model_copy(update={...})`."""
    return Settings(
        _env_file=None, demo=True, database_url=services.database_url, redis_url=services.redis_url, var_dir=var_dir
    )


@pytest.fixture(scope="session")
def admin_engine(settings: Settings) -> Iterator[Engine]:
    """Connections of the fixtures' own, to look and clean with."""
    engine = make_engine(settings.database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def container(settings: Settings, admin_engine: Engine) -> Iterator[Container]:
    """A fresh container; afterwards every table and all of Valkey is empty again."""
    made = build_container(settings)
    yield made
    made.engine.dispose()
    made.redis.close()
    _empty_tables(admin_engine)
    with Redis.from_url(settings.redis_url) as client:
        client.flushall()


def _empty_tables(engine: Engine) -> None:
    with engine.begin() as connection:
        # A process that a test left behind would hold locks; say so instead of waiting for ever.
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        names = connection.scalars(
            text("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
        ).all()
        kept = ", ".join(name for name in names if name != "alembic_version")
        connection.execute(text(f"TRUNCATE {kept} RESTART IDENTITY CASCADE"))


@pytest.fixture
def app(container: Container) -> Flask:
    """The Flask application on the test container."""
    from app.factory import create_app

    made = create_app(container)
    made.testing = True
    return made


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client that nobody has signed in with yet."""
    return app.test_client()


@pytest.fixture
def login(app: Flask, container: Container) -> Login:
    """Sign in through the form: `login("ann", Role.ADMIN)` makes the person if needed and returns their own client."""

    def sign_in(username: str = "agent", role: Role = Role.AGENT) -> FlaskClient:
        make_staff(container, username, role)
        client = app.test_client()
        page = client.get("/sign-in").get_data(as_text=True)
        token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
        fields = {"username": username, "password": PASSWORD, "csrf_token": token.group(1) if token else ""}
        answer = client.post("/sign-in", data=fields)
        assert answer.status_code in (302, 303), answer.get_data(as_text=True)[:2000]
        return client

    return sign_in
