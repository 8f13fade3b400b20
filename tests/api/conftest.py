"""A client with a token, and one without."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from app.bootstrap import Container
from app.staff.tokens import issue_token
from tests.api.caller import Caller


@pytest.fixture
def token(container: Container) -> str:
    with container.transaction() as session:
        return issue_token(session, name="shop-backend", source="shop")


@pytest.fixture
def api(client: FlaskClient, container: Container, token: str) -> Iterator[Caller]:
    """Calls the API as the holder of a token."""
    yield Caller(client, token)
    if "hub" in vars(container):
        container.hub.close()
