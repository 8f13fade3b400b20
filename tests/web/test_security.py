"""Who may do what, and what browsers are told to refuse."""

import re
from io import BytesIO

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.routing import Rule

from app.bootstrap import Container, build_container
from app.factory import create_app
from app.httpkit.security import CSP
from app.ids import new_id
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


OPEN_TO_STRANGERS = {
    "static",
    "health.healthz",
    "auth.sign_in",
    "auth.sign_in_submit",
    "auth.sign_out",
    "preferences.language",
}


def test_every_other_address_is_closed_to_strangers(app: Flask) -> None:
    """A new view that forgets its decorator fails here."""
    client = app.test_client()
    token = {"X-CSRFToken": csrf(client)}
    examples: dict[str, object] = {"uuid": new_id(), "int": 1001, "default": "x", "path": "x"}
    requests = [
        (rule.endpoint, method, rule, {name: examples[kind] for name, kind in _places(rule)})
        for rule in app.url_map.iter_rules()
        if rule.endpoint not in OPEN_TO_STRANGERS
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    ]
    assert len(requests) > 25
    for endpoint, method, rule, values in requests:
        _, path = rule.build(values) or ("", "")
        answer = client.open(path, method=method, headers=token)
        sent_away = answer.status_code == 302 and answer.headers["Location"].startswith("/sign-in")
        assert sent_away or answer.status_code == 401, f"{endpoint} {method} answers {answer.status_code}"


def _places(rule: Rule) -> list[tuple[str, str]]:
    return [(name, kind or "default") for kind, name in re.findall(r"<(?:(\w+)(?:\([^)]*\))?:)?(\w+)>", rule.rule)]


UPLOAD = b"x" * (3 * 2**20)


@pytest.mark.parametrize(
    ("role", "path", "status"),
    [
        (None, "/sign-in", 413),
        (None, "/knowledge", 413),
        (Role.AGENT, "/knowledge", 413),
        (Role.ADMIN, "/tickets/new", 413),
        (Role.SUPERVISOR, "/knowledge", 200),
    ],
)
def test_only_uploads_may_be_large(app: Flask, login: Login, role: Role | None, path: str, status: int) -> None:
    client = login("someone", role) if role else app.test_client()
    headers = HTMX | {"X-CSRFToken": csrf(client)}
    fields = {"files": (BytesIO(UPLOAD), "large.txt")}
    answer = client.post(path, data=fields, headers=headers, content_type="multipart/form-data")
    assert answer.status_code == status
    answer.request.environ["wsgi.input"].close()  # the client spools a body of this size to a file


@pytest.mark.parametrize(
    "path",
    [
        "/?q=%00",
        "/inbox/rows?q=%00a%1f",
        f"/inbox/rows?after=3.0.{10**26}.0197c0de-0000-7000-8000-000000000000",
        f"/inbox/rows?after={10**12}.0.1.0197c0de-0000-7000-8000-000000000000",
        f"/inbox/rows?after=3.{10**12}.1.0197c0de-0000-7000-8000-000000000000",
        f"/inbox/rows?q={'9' * 30}",
        "/knowledge/search?question=%00",
        f"/tickets/{10**19}",
        f"/tickets/{10**19}/regions",
        f"/tickets/{2**63 - 1}",
    ],
)
def test_hostile_addresses_are_answered(login: Login, container: Container, path: str) -> None:
    make_ticket(container)
    assert login("boss", Role.ADMIN).get(path).status_code == (404 if path.startswith("/tickets/") else 200)


def test_hostile_forms_are_answered(login: Login) -> None:
    assert send(login("agent"), f"/tickets/{10**19}/approve", run_id=new_id(), text="x", htmx=True).status_code == 404


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
    assert ['href="/admin/runs"' in seen[role] for role in Role] == [False, False, True]


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
    for headers, status in (
        ({}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://evil.example", "Referer": "http://localhost/admin/rq/"}, 403),
        ({"Referer": "http://evil.example/?http://localhost/"}, 403),
        ({"Referer": "http://localhost.evil.example/"}, 403),
        ({"Origin": "http://localhost"}, 200),
        ({"Referer": "http://localhost/admin/rq/"}, 200),
    ):
        assert client.post("/admin/rq/requeue/runs", headers=headers).status_code == status, headers
    emptied = client.post("/admin/rq/queue/runs/queued/empty", headers={"Sec-Fetch-Site": "same-origin"})
    assert emptied.get_json() == {"status": "DISABLED"}


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
