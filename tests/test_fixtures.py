"""The fixtures keep their promises."""

import socket

import pytest
from pytest_socket import SocketConnectBlockedError
from sqlalchemy import text

from app.bootstrap import Container
from tests.factories import make_ticket


@pytest.mark.parametrize("attempt", [1, 2])
def test_every_test_starts_empty(container: Container, attempt: int) -> None:
    with container.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM tickets")) == 0
    assert container.redis.dbsize() == 0
    made = make_ticket(container)
    assert made.number == 1001
    assert container.redis.exists(f"thread:{made.thread_id}")


def test_tests_reach_nothing_beyond_this_machine() -> None:
    with socket.socket() as outside, pytest.raises((SocketConnectBlockedError, UserWarning)):
        outside.connect(("192.0.2.1", 80))
