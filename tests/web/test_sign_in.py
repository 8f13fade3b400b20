"""Signing in and out, and what a session is worth."""

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select, update

from app.bootstrap import Container
from app.factory import create_app
from app.settings import Settings
from app.staff.models import Role, Staff
from app.staff.service import FAILURES_ALLOWED, create_staff, end_sessions
from tests.conftest import Login
from tests.factories import PASSWORD, make_staff
from tests.web.pages import ENGLISH, HTMX, csrf, send, text_of


def enter(client: FlaskClient, username: str, password: str, **fields: str):
    return send(client, "/sign-in", username=username, password=password, **fields)


def test_pages_ask_for_sign_in_and_lead_back(client: FlaskClient, container: Container) -> None:
    make_staff(container)
    answer = client.get("/?view=urgent")
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/sign-in?next=/?view%3Durgent"
    back = enter(client, "agent", PASSWORD, next="/?view=urgent")
    assert (back.status_code, back.headers["Location"]) == (303, "/?view=urgent")
    text_of(client.get("/?view=urgent"))


@pytest.mark.parametrize("path", ["/", "/tickets/new", "/tickets/1001", "/knowledge", "/inbox/rows", "/admin/rq/"])
def test_no_page_is_open_to_strangers(client: FlaskClient, path: str) -> None:
    assert client.get(path).headers["Location"].startswith("/sign-in?next=")
    refused = client.get(path, headers=HTMX)
    assert refused.status_code == 401
    assert "hx-partial" in refused.get_data(as_text=True)


def test_a_stream_is_refused_and_never_sent_elsewhere(client: FlaskClient) -> None:
    assert client.get("/live", headers={"Accept": "text/event-stream"}).status_code == 401


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "\\/evil", "javascript:alert(1)", "/a\nb"]
)
def test_the_way_back_stays_on_this_site(client: FlaskClient, container: Container, target: str) -> None:
    make_staff(container)
    assert enter(client, "agent", PASSWORD, next=target).headers["Location"] == "/"


def test_wrong_password_and_unknown_name_sound_the_same(client: FlaskClient, container: Container) -> None:
    make_staff(container)
    words = {text_of(enter(client, name, "wrong"), 422).count("账号或密码不对") for name in ("agent", "nobody")}
    assert words == {1}


def test_someone_shut_out_cannot_enter_and_their_session_ends(login: Login, container: Container) -> None:
    client = login("agent")
    with container.transaction() as session:
        session.execute(update(Staff).values(is_active=False))
    assert client.get("/").status_code == 302
    assert enter(client, "agent", PASSWORD).status_code == 422


def test_a_name_waits_after_five_failures(client: FlaskClient, container: Container) -> None:
    make_staff(container)
    for _ in range(FAILURES_ALLOWED):
        assert enter(client, "agent", "wrong").status_code == 422
    assert enter(client, "agent", PASSWORD).status_code == 429
    with container.redis.client() as redis:
        assert 0 < redis.ttl("sign-in:agent:127.0.0.1") <= 900


def test_a_success_forgets_the_failures(client: FlaskClient, container: Container) -> None:
    make_staff(container)
    enter(client, "agent", "wrong")
    enter(client, "agent", PASSWORD)
    assert container.redis.keys("sign-in:*") == []


def test_people_can_sign_in_while_redis_is_away(settings: Settings, container: Container) -> None:
    make_staff(container)
    from app.bootstrap import build_container

    alone = build_container(settings.model_copy(update={"redis_url": "unix:///nowhere/valkey.sock"}))
    client = create_app(alone).test_client()
    assert enter(client, "agent", PASSWORD).status_code == 303
    alone.engine.dispose()


def test_the_session_starts_afresh_at_sign_in(client: FlaskClient, container: Container) -> None:
    make_staff(container)
    before = csrf(client)
    with client.session_transaction() as session:
        session["planted"] = "by somebody else"
    enter(client, "agent", PASSWORD)
    with client.session_transaction() as session:
        assert "planted" not in session
    stale = client.post("/sign-out", data={"csrf_token": before})
    assert stale.status_code == 400


def test_ending_sessions_ends_them_everywhere(login: Login, container: Container) -> None:
    desk, phone = login("agent"), login("agent")
    with container.transaction() as session:
        end_sessions(session, staff_id=session.scalars(select(Staff.id)).one())
    assert [client.get("/").status_code for client in (desk, phone)] == [302, 302]


def test_sign_out_needs_the_form(login: Login) -> None:
    client = login("agent")
    assert client.get("/sign-out").status_code == 405
    assert send(client, "/sign-out").status_code == 303
    assert client.get("/").status_code == 302


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(client: FlaskClient, container: Container) -> None:
    make_staff(container)
    cookie = enter(client, "agent", PASSWORD, keep="on").headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Expires=" in cookie
    assert "Expires=" not in enter(client.application.test_client(), "agent", PASSWORD).headers["Set-Cookie"]


def test_demo_accounts_are_offered_in_demo_mode_only(settings: Settings, container: Container, app: Flask) -> None:
    assert "agent-demo" in text_of(app.test_client().get("/sign-in"))
    real = settings.model_copy(update={"demo": False})
    other = create_app(Container(real, container.engine, container.sessions, container.redis))
    assert "agent-demo" not in text_of(other.test_client().get("/sign-in"))


def test_a_person_made_by_the_service_signs_in_and_is_rehashed(client: FlaskClient, container: Container) -> None:
    with container.transaction() as session:
        create_staff(session, username="ann", display_name="Ann", password="long enough 1", role=Role.SUPERVISOR)
    make_staff(container, "old")
    with container.sessions() as session:
        before = session.scalars(select(Staff.password_hash).where(Staff.username == "old")).one()
    assert enter(client, "ann", "long enough 1").status_code == 303
    assert enter(client.application.test_client(), "old", PASSWORD).status_code == 303
    with container.sessions() as session:
        assert session.scalars(select(Staff.password_hash).where(Staff.username == "old")).one() != before


def test_signed_in_people_skip_the_sign_in_page(login: Login) -> None:
    assert login("agent").get("/sign-in?next=/knowledge").headers["Location"] == "/knowledge"


def test_words_of_a_refusal_follow_the_language(client: FlaskClient) -> None:
    token = csrf(client)
    answer = client.post("/sign-in", data={"csrf_token": token, "username": "a", "password": "b"}, headers=ENGLISH)
    assert "Account or password is wrong." in text_of(answer, 422)
