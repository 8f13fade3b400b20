"""While Redis hangs, nobody waits for it longer than a second: what it was to be told is told by the sweeps."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.bootstrap import Container, build_container
from app.clock import monotonic
from app.factory import create_app
from app.settings import Settings
from tests.factories import PASSWORD, make_staff, make_ticket
from tests.support.own_valkey import OwnValkey
from tests.web.pages import csrf

WAIT_S = 1.5
"""One wait of a second and what a busy machine adds; two waits would be more."""


@pytest.fixture
def valkey(var_dir: Path) -> Iterator[OwnValkey]:
    made = OwnValkey(var_dir)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def parts(container: Container, settings: Settings, valkey: OwnValkey) -> Iterator[Container]:
    """A container on that Valkey; `container` empties the tables afterwards."""
    made = build_container(settings.model_copy(update={"redis_url": valkey.url}))
    yield made
    made.engine.dispose()
    made.redis.close()


def waited(act: Callable[[], object], valkey: OwnValkey) -> float:
    """Return how many seconds longer an act takes once Valkey hangs."""
    start = monotonic()
    act()
    usual = monotonic() - start
    valkey.hang()
    start = monotonic()
    act()
    return monotonic() - start - usual


def test_what_was_committed_is_answered_for(parts: Container, valkey: OwnValkey) -> None:
    """A ticket with its event and its job: all signals of a transaction together."""
    assert 0.5 < waited(lambda: make_ticket(parts), valkey) < WAIT_S


def test_people_can_sign_in(parts: Container, valkey: OwnValkey) -> None:
    make_staff(parts)
    app = create_app(parts)

    def sign_in() -> None:
        client = app.test_client()
        fields = {"username": "agent", "password": PASSWORD, "csrf_token": csrf(client)}
        assert client.post("/sign-in", data=fields).status_code == 303

    assert 0.5 < waited(sign_in, valkey) < WAIT_S
