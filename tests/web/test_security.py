"""Who may do what, and what browsers are told to refuse."""

import re

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.bootstrap import Container, build_container
from app.factory import create_app
from app.httpkit.security import CSP
from app.settings import Settings
from app.staff.models import Role
from tests.conftest import Login
from tests.factories import make_ticket
from tests.web.pages import HTMX, csrf, send, text_of

POSTS = ["/sign-in", "/sign-out", "/preferences/language", "/tickets/new", "/knowledge"]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("headers", [{}, HTMX, HTMX | {"X-CSRFToken": "forged"}])
def test_no_change_without_the_token(login: Login, path: str, headers: dict[str, str]) -> None:
    answer = login("boss", Role.ADMIN).post(path, data={"locale": "en"}, headers=headers)
    assert answer.status_code == 400
    assert "页面已经失效" in answer.get_data(as_text=True)


def test_every_post_route_is_protected(app: Flask) -> None:
    """A new form is protected because nothing but the API and the dashboard is left out."""
    left_out = {blueprint.name for blueprint in app.extensions["csrf"]._exempt_blueprints}
    assert {name for name in left_out if not name.startswith("api_")} == {"rq_dashboard"}
    assert app.extensions["csrf"]._exempt_views == set()


def test_the_token_of_one_session_is_worth_nothing_in_another(login: Login) -> None:
    first, second = login("a"), login("b")
    answer = second.post("/preferences/language", data={"locale": "en", "csrf_token": csrf(first)})
    assert answer.status_code == 400


def test_pages_carry_the_headers(login: Login) -> None:
    for path in ("/", "/sign-in", "/nothing"):
        headers = login("agent").get(path).headers
        assert headers["Content-Security-Policy"] == CSP
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Request-ID"]
    assert "unsafe" not in CSP
    assert "frame-ancestors 'none'" in CSP


def test_no_page_needs_more_than_the_policy_allows(login: Login, container: Container) -> None:
    made = make_ticket(container)
    client = login("boss", Role.ADMIN)
    for path in ("/", "/sign-in", "/tickets/new", f"/tickets/{made.number}", "/knowledge", "/nothing"):
        page = client.get(path).get_data(as_text=True)
        assert not re.search(r"<script(?![^>]*\bsrc=)", page), path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on", page), path
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page), path


@pytest.mark.parametrize("path", ["/knowledge", "/knowledge/search?question=x"])
def test_knowledge_is_for_supervisors(login: Login, path: str) -> None:
    refused = text_of(login("agent").get(path), 403)
    assert "您的账号不能打开这里" in refused
    for role in (Role.SUPERVISOR, Role.ADMIN):
        text_of(login(role.value, role).get(path))


def test_the_rail_shows_what_a_role_can_open(login: Login) -> None:
    seen = {role: text_of(login(role.value, role).get("/")) for role in Role}
    assert ['href="/knowledge"' in seen[role] for role in Role] == [False, True, True]
    assert ['href="/admin/rq/"' in seen[role] for role in Role] == [False, False, True]


def test_the_dashboard_is_for_administrators(login: Login) -> None:
    assert login("lead", Role.SUPERVISOR).get("/admin/rq/").status_code == 403
    client = login("boss", Role.ADMIN)
    page = client.get("/admin/rq/")
    assert page.status_code == 200
    assert "unsafe-inline" in page.headers["Content-Security-Policy"]
    assert client.get("/admin/rq/0/data/queues.json").status_code == 200


def test_the_dashboard_changes_nothing_for_other_sites(login: Login) -> None:
    client = login("boss", Role.ADMIN)
    assert client.get("/admin/rq/requeue/runs").status_code == 405
    assert client.post("/admin/rq/requeue/runs", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post("/admin/rq/requeue/runs", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert client.post("/admin/rq/queue/runs/queued/empty").get_json() == {"status": "DISABLED"}


def test_the_api_does_not_act_on_a_session(login: Login) -> None:
    answer = login("agent").post("/api/v1/tickets", json={"subject": "x"})
    assert answer.status_code == 401
    assert answer.mimetype == "application/problem+json"


def test_static_files_are_kept_by_their_digest_only(client: FlaskClient) -> None:
    page = client.get("/sign-in").get_data(as_text=True)
    found = re.search(r'href="(/static/css/base\.css\?v=[0-9a-f]+)"', page)
    assert found
    with client.get(found.group(1)) as versioned, client.get("/static/css/base.css") as plain:
        assert versioned.cache_control.immutable
        assert not plain.cache_control.immutable


def test_healthz_names_the_part_that_is_away(client: FlaskClient, settings: Settings) -> None:
    assert client.get("/healthz").get_json() == {"status": "ok", "postgresql": "ok", "redis": "ok"}
    away = build_container(
        settings.model_copy(
            update={"redis_url": "unix:///nowhere", "database_url": "postgresql+psycopg:///?host=/nowhere"}
        )
    )
    answer = create_app(away).test_client().get("/healthz")
    assert answer.status_code == 503
    assert answer.get_json() == {"status": "unavailable", "postgresql": "away", "redis": "away"}


def test_language_choice_is_for_known_languages(login: Login) -> None:
    client = login("agent")
    assert send(client, "/preferences/language", locale="xx").status_code == 422
    assert send(client, "/preferences/language", locale="en", next="//evil.example").headers["Location"] == "/"
    assert "Needs" not in text_of(client.get("/"))
    assert 'lang="en"' in text_of(client.get("/"))
