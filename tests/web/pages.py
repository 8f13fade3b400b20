"""What tests of pages share: the CSRF token of a session, and requests as htmx makes them."""

import re

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

HTMX = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Source": "button#x"}
ENGLISH = {"Accept-Language": "en"}


def csrf(client: FlaskClient) -> str:
    """Return the token that the pages of this client's session carry."""
    page = client.get("/tickets/new").get_data(as_text=True)
    if "csrf_token" not in page:
        page = client.get("/sign-in").get_data(as_text=True)
    found = re.search(r'name="csrf_token" value="([^"]+)"', page)
    assert found, page[:500]
    return found.group(1)


def send(client: FlaskClient, path: str, *, htmx: bool = False, **fields: object) -> TestResponse:
    """Post a form as the page would, with its token."""
    token = csrf(client)
    if htmx:
        return client.post(path, data=fields, headers=HTMX | {"X-CSRFToken": token})
    return client.post(path, data=fields | {"csrf_token": token})


def text_of(response: TestResponse, status: int = 200) -> str:
    """Return the body of an answer that must have this status."""
    body = response.get_data(as_text=True)
    assert response.status_code == status, f"{response.status_code}: {body[:1500]}"
    return body
