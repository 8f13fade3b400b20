"""Bodies that come in chunks, as gunicorn hands them on, meet the limits as any other body does."""

from io import BytesIO
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.api.entry import BODY_BYTES
from app.bootstrap import Container
from app.factory import FORM_BYTES
from app.staff.tokens import issue_token
from tests.conftest import Login
from tests.web.pages import HTMX, csrf, text_of


def post_in_chunks(client: FlaskClient, path: str, body: bytes, content_type: str, **headers: str) -> TestResponse:
    environ = {"wsgi.input": BytesIO(body), "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(path, content_type=content_type, headers=named, environ_overrides=environ)


@pytest.mark.parametrize(("size", "status"), [(100, 422), (FORM_BYTES, 413), (1_100_000, 413)])
def test_a_form(login: Login, size: int, status: int) -> None:
    client = login()
    form = urlencode({"csrf_token": csrf(client), "subject": "退款几天到", "content": "x" * size}).encode()
    answer = post_in_chunks(client, "/tickets/new", form, "application/x-www-form-urlencoded", **HTMX)
    page = text_of(answer, status)
    assert ("退款几天到" if status == 422 else "内容太大") in page


@pytest.mark.parametrize(("size", "status"), [(100, 422), (BODY_BYTES, 413), (FORM_BYTES, 413), (3 * FORM_BYTES, 413)])
def test_a_body_of_the_api(client: FlaskClient, container: Container, size: int, status: int) -> None:
    with container.transaction() as session:
        token = issue_token(session, name="shop-backend", source="shop")
    body = b'{"subject": "' + b"x" * size + b'"}'
    answer = post_in_chunks(client, "/api/v1/tickets", body, "application/json", Authorization=f"Bearer {token}")
    assert (answer.status_code, answer.get_json()["status"]) == (status, status)
