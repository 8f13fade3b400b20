"""Tokens are kept as digests, end at once, and open the API without any cookie."""

from datetime import datetime

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select, text, update

from app.bootstrap import Container
from app.errors import InvalidInput, NotFound
from app.staff.models import ApiToken
from app.staff.tokens import issue_token, revoke_token, verify_token
from tests.api.caller import Caller


def last_used(container: Container) -> datetime | None:
    with container.transaction() as session:
        return session.scalars(select(ApiToken.last_used_at)).one()


def test_only_a_digest_is_kept(container: Container, token: str) -> None:
    with container.transaction() as session:
        row = session.scalars(select(ApiToken)).one()
        assert token not in (row.digest, row.name, row.source)
        assert len(token) > 40
        holder = verify_token(session, token)
        assert holder is not None
        assert (holder.name, holder.source) == ("shop-backend", "shop")
        assert verify_token(session, token + "x") is None
        assert verify_token(session, "\udcff") is None


def test_the_use_is_noted_at_most_once_a_minute(container: Container, api: Caller) -> None:
    assert last_used(container) is None
    api.get("/tickets")
    first = last_used(container)
    assert first is not None
    api.get("/tickets")
    assert last_used(container) == first
    with container.transaction() as session:
        session.execute(update(ApiToken).values(last_used_at=func.now() - text("interval '2 minutes'")))
    api.get("/tickets")
    later = last_used(container)
    assert later is not None
    assert later > first


def test_a_revoked_token_opens_nothing(container: Container, api: Caller) -> None:
    assert api.get("/tickets").status_code == 200
    with container.transaction() as session:
        revoke_token(session, "shop-backend")
    assert api.get("/tickets").status_code == 401
    with container.transaction() as session, pytest.raises(NotFound):
        revoke_token(session, "shop-backend")


@pytest.mark.parametrize(
    ("name", "source"), [("", "shop"), ("x" * 81, "shop"), ("ok", "Has Space"), ("ok", ""), ("shop-backend", "shop")]
)
def test_tokens_that_can_not_be_issued(container: Container, token: str, name: str, source: str) -> None:
    with container.transaction() as session, pytest.raises(InvalidInput):
        issue_token(session, name=name, source=source)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic abc", "Bearer wrong", "Bearer \xff"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/tickets"), ("POST", "/tickets"), ("GET", "/tickets/1001")])
def test_without_a_good_token(client: FlaskClient, container: Container, header: str, method: str, path: str) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = client.open(f"/api/v1{path}", method=method, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="draftdesk"')
    assert answer.mimetype == "application/problem+json"
    assert "Set-Cookie" not in answer.headers
