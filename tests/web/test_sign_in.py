"""Signing in and out, and what a session is worth."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.errors import AppError
from app.factory import create_app
from app.settings import Settings
from app.staff.models import Role, Staff, StaffSession
from app.staff.passwords import PasswordCheck, check_password
from app.staff.service import create_staff
from app.staff.sign_in import FAILURES_ALLOWED, SESSION_LIFE, FailureCount, TooManyFailures, authenticate
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
    (key,) = container.redis.keys("sign-in:*")
    assert 0 < container.redis.ttl(key) <= 900


def test_attempts_at_the_same_time_do_not_pass_together(container: Container) -> None:
    """Each counts before its password is looked at: no two find the count as it was before both."""
    make_staff(container)
    start = Barrier(2 * FAILURES_ALLOWED)
    checked = []

    def check(kept: str | None, password: str) -> PasswordCheck:
        checked.append(password)
        return check_password(kept, password)

    def guess() -> type[Exception]:
        failures = FailureCount(container.redis, "agent", "origin")
        start.wait(timeout=10)
        with pytest.raises(AppError) as refused:
            authenticate(container.transaction, username="agent", password="wrong", failures=failures, check=check)
        return refused.type

    with ThreadPoolExecutor(start.parties) as pool:
        outcomes = [future.result() for future in [pool.submit(guess) for _ in range(start.parties)]]
    assert outcomes.count(TooManyFailures) == FAILURES_ALLOWED
    assert len(checked) == FAILURES_ALLOWED


def test_no_session_is_open_while_a_password_is_checked(container: Container) -> None:
    make_staff(container)
    held = []

    def check(kept: str | None, password: str) -> PasswordCheck:
        held.append(container.engine.pool.checkedout())
        return check_password(kept, password)

    failures = FailureCount(container.redis, "agent", "origin")
    authenticate(container.transaction, username="agent", password=PASSWORD, failures=failures, check=check)
    assert held == [0]


@pytest.mark.parametrize("username", ["a\0b", "a" * 81, "a" * 500_000])
def test_names_that_nobody_can_have(client: FlaskClient, container: Container, username: str) -> None:
    assert enter(client, username, "x").status_code == 422
    assert container.redis.keys("sign-in:*") == []


def test_people_behind_a_trusted_proxy_have_origins_of_their_own(settings: Settings, container: Container) -> None:
    """Without the setting the header is what anybody may write, and counts for nothing."""
    for trusted, keys in ((0, 1), (1, 2)):
        container.redis.flushdb()
        changed = settings.model_copy(update={"trusted_proxies": trusted})
        app = create_app(Container(changed, container.engine, container.sessions, container.redis))
        for address in ("192.0.2.1", "192.0.2.2"):
            client = app.test_client()
            fields = {"username": "agent", "password": "wrong", "csrf_token": csrf(client)}
            client.post("/sign-in", data=fields, headers={"X-Forwarded-For": address})
        assert len(container.redis.keys("sign-in:*")) == keys


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


def test_signing_out_ends_this_session_and_no_other(login: Login) -> None:
    desk, phone = login("agent"), login("agent")
    cookie = desk.get_cookie("draftdesk")
    assert cookie
    assert send(desk, "/sign-out").status_code == 303
    desk.set_cookie("draftdesk", cookie.value)
    assert desk.get("/").status_code == 302, "a copy of the cookie still opens pages"
    assert phone.get("/").status_code == 200


def test_a_session_ends_by_its_age(login: Login, container: Container) -> None:
    client = login("agent")
    with container.transaction() as session:
        session.execute(update(StaffSession).values(created_at=func.now() - SESSION_LIFE))
    assert client.get("/").status_code == 302
    login("agent")
    with container.sessions() as session:
        assert session.scalars(select(func.count()).select_from(StaffSession)).one() == 1


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
