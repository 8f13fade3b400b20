"""Errors are answered in words: as a page, as a toast inside htmx, as a problem document for the API."""

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.bootstrap import Container, build_container
from app.errors import Conflict, InvalidInput, Unavailable
from app.factory import create_app
from app.runs.events import lock_thread
from app.settings import Settings
from tests.factories import make_ticket
from tests.web.pages import ENGLISH, HTMX, text_of


class LostAgain(Exception):
    """An error whose words are in the database, which goes away just then."""


@pytest.fixture
def failing(app: Flask) -> FlaskClient:
    """A client of an app with pages that fail in every way."""
    app.testing = False

    @app.get("/boom")
    def boom() -> str:
        raise ZeroDivisionError("secret detail")

    @app.get("/conflict")
    def conflict() -> str:
        raise Conflict("A token with the name %(name)s is in use.", name="<b>")

    @app.get("/invalid")
    def invalid() -> str:
        raise InvalidInput("This field is required.", field="subject")

    @app.get("/api/v1/invalid")
    def api_invalid() -> str:
        raise InvalidInput("This field is required.", field="subject")

    @app.get("/away")
    def away() -> str:
        raise Unavailable("The embedding service does not answer.")

    @app.get("/lost")
    def lost() -> str:
        raise LostAgain

    @app.errorhandler(LostAgain)
    def say_so(_error: LostAgain) -> str:
        raise OperationalError("SELECT", {}, Exception("gone"))

    @app.get("/api/v1/boom")
    def api_boom() -> str:
        raise ZeroDivisionError("secret detail")

    return app.test_client()


def test_an_unknown_address_gets_a_page_in_both_languages(client: FlaskClient) -> None:
    assert "这个地址下没有内容" in text_of(client.get("/nothing"), 404)
    assert "There is nothing at this address." in text_of(client.get("/nothing", headers=ENGLISH), 404)


def test_a_database_that_goes_away_while_an_error_is_put_into_words_is_named(failing: FlaskClient) -> None:
    assert "A part of the system does not answer." in text_of(failing.get("/lost", headers=ENGLISH), 503)


def test_a_wrong_method_says_what_is_allowed(client: FlaskClient) -> None:
    answer = client.get("/sign-out")
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]


def test_something_unexpected_shows_a_number_and_no_detail(failing: FlaskClient) -> None:
    answer = failing.get("/boom")
    page = text_of(answer, 500)
    assert answer.headers["X-Request-ID"] in page
    assert "secret detail" not in page
    assert "ZeroDivisionError" not in page


def test_htmx_gets_a_toast_and_no_page(failing: FlaskClient) -> None:
    body = text_of(failing.get("/conflict", headers=HTMX | ENGLISH), 409)
    assert body.strip().startswith('<hx-partial hx-target="#toasts"')
    assert "A token with the name &lt;b&gt; is in use." in body
    assert "<html" not in body


def test_answers_for_htmx_and_for_pages_are_kept_apart(failing: FlaskClient) -> None:
    assert "HX-Request" in failing.get("/conflict").headers["Vary"]


def test_the_api_gets_a_problem_document(failing: FlaskClient) -> None:
    answer = failing.get("/api/v1/invalid", headers=ENGLISH)
    assert (answer.status_code, answer.mimetype) == (422, "application/problem+json")
    body = answer.get_json()
    assert body["status"] == 422
    assert body["type"] == "urn:draftdesk:error:invalid_input"
    assert body["errors"] == [{"field": "subject", "message": "This field is required."}]
    broken = failing.get("/api/v1/boom")
    assert (broken.status_code, broken.mimetype) == (500, "application/problem+json")
    assert "secret detail" not in broken.get_data(as_text=True)


def test_an_error_of_ours_keeps_its_words(failing: FlaskClient) -> None:
    assert "向量服务没有响应" in text_of(failing.get("/away"), 503)
    assert "此项必填" in text_of(failing.get("/invalid"), 422)


def test_who_waits_too_long_for_another_is_told_to_come_again(app: Flask, container: Container) -> None:
    made = make_ticket(container)

    def change() -> str:
        with container.transaction() as session:
            session.execute(text("SET LOCAL lock_timeout = '1ms'"))
            lock_thread(session, made.ticket_id)
        return ""

    for address in ("/busy", "/api/v1/busy"):
        app.add_url_rule(address, address, change)
    with container.transaction() as session:
        lock_thread(session, made.ticket_id)
        assert "别人正在修改这里" in text_of(app.test_client().get("/busy"), 503)
        answer = app.test_client().get("/api/v1/busy", headers=ENGLISH)
    assert (answer.status_code, answer.get_json()["type"]) == (503, "urn:draftdesk:error:busy")


def test_too_large_a_body_is_refused_in_words(app: Flask) -> None:
    app.config["MAX_CONTENT_LENGTH"] = 1_000
    answer = app.test_client().post("/sign-in", data={"username": "x" * 5_000})
    assert "内容太大" in text_of(answer, 413)


def test_pages_say_so_while_the_database_is_away(settings: Settings, container: Container) -> None:
    away = build_container(settings.model_copy(update={"database_url": "postgresql+psycopg:///?host=/nowhere"}))
    client = create_app(away).test_client()
    with client.session_transaction() as session:
        session["_user_id"] = "01a22cc1-fe20-7041-b146-95a9764c25fd"
    with pytest.raises(OperationalError), away.sessions() as database:
        database.connection()
    assert "系统有一部分没有响应" in text_of(client.get("/"), 503)
