"""Tickets over the API: taken in once a key, with every fault named; shown and listed."""

from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from app.api.entry import BODY_BYTES
from app.bootstrap import Container
from app.ids import new_id
from app.staff.tokens import issue_token
from app.tickets.models import Ticket
from tests.api.caller import GOOD, Caller


def test_a_new_ticket(api: Caller, container: Container) -> None:
    answer = api.create(customer_name="陈雨桐", channel="app")
    assert answer.status_code == 201
    body = answer.get_json()
    assert answer.headers["Location"] == body["url"] == f"/api/v1/tickets/{body['number']}"
    shown = api.client.get(body["url"], headers={"Authorization": f"Bearer {api.token}"}).get_json()
    assert (shown["id"], shown["subject"], shown["channel"], shown["status"]) == (
        body["id"],
        GOOD["subject"],
        "app",
        "pending",
    )
    assert shown["run"] == {"id": body["run_id"], "status": "created"}
    assert [message["body"] for message in shown["messages"]] == [GOOD["content"]]
    assert api.get(f"/tickets/{body['id']}").get_json() == shown


def test_the_key_again(api: Caller) -> None:
    first, again = api.create(), api.create()
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.get_json() == first.get_json() | {"created": False}
    assert again.headers["Location"] == first.headers["Location"]
    other = api.create(content="换个问题")
    assert (other.status_code, other.get_json()["type"]) == (422, "urn:draftdesk:error:key_reused")


def test_the_key_as_a_field(api: Caller) -> None:
    assert api.create().status_code == 201
    assert api.post("/tickets", GOOD | {"idempotency_key": "order-4711"}).status_code == 200
    clash = api.post("/tickets", GOOD | {"idempotency_key": "order-4711"}, Idempotency_Key="order-4712")
    assert clash.get_json()["errors"][0]["field"] == "idempotency_key"


def test_keys_of_different_tokens_never_meet(api: Caller, container: Container) -> None:
    with container.transaction() as session:
        crm = Caller(api.client, issue_token(session, name="crm", source="crm"))
    assert api.create().get_json()["id"] != crm.create(content="换个问题").get_json()["id"]


def test_every_fault_is_named(api: Caller, container: Container) -> None:
    answer = api.create(customer_id="", subject="\u0000", content=7, channel="fax")
    assert answer.status_code == 422
    assert answer.mimetype == "application/problem+json"
    problem = answer.get_json()
    assert problem["type"] == "urn:draftdesk:error:invalid_fields"
    assert [error["field"] for error in problem["errors"]] == ["customer_id", "subject", "content", "channel"]
    assert all(error["message"] for error in problem["errors"])
    every = api.create(key="short", customer_id="", custmer_name="x").get_json()["errors"]
    assert {error["field"] for error in every} == {"idempotency_key", "customer_id", "custmer_name"}
    assert api.create(key="short").get_json()["errors"][0]["field"] == "idempotency_key"
    assert api.create(custmer_name="x").get_json()["errors"][0]["field"] == "custmer_name"
    with container.transaction() as session:
        assert session.scalars(select(func.count()).select_from(Ticket)).one() == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b'"x"', b'{"a": NaN}', b'{"subject": "\\ud800"}', b"\xff"])
def test_bodies_that_are_no_object(api: Caller, body: bytes) -> None:
    answer = api.post_bytes("/tickets", body, "application/json")
    assert (answer.status_code, answer.get_json()["status"]) == (400, 400)


def test_a_deep_body(api: Caller) -> None:
    assert api.post_bytes("/tickets", b'{"a":' * 20_000, "application/json").status_code == 400


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_bodies_of_another_kind(api: Caller, content_type: str) -> None:
    assert api.post_bytes("/tickets", b"{}", content_type).status_code == 415


def test_a_body_that_is_too_large(api: Caller) -> None:
    answer = api.create(content="x" * BODY_BYTES)
    assert (answer.status_code, answer.get_json()["status"]) == (413, 413)


@pytest.mark.parametrize("ref", ["1", "999999999999999999", "0", "abc", str(new_id()), "1001.5", "１００１"])
def test_tickets_that_do_not_exist(api: Caller, ref: str) -> None:
    api.create()
    answer = api.get(f"/tickets/{ref}")
    assert (answer.status_code, answer.get_json()["status"]) == (404, 404)


def test_pages_of_a_list(api: Caller, container: Container) -> None:
    made = [api.create(key=f"order-000{n}").get_json()["number"] for n in range(5)]
    with container.transaction() as session:
        session.execute(update(Ticket).where(Ticket.number == made[2]).values(status="resolved"))
    seen: list[int] = []
    path: str | None = "/api/v1/tickets?limit=2&status=pending"
    while path:
        page = api.get(path.removeprefix("/api/v1")).get_json()
        assert len(page["tickets"]) <= 2
        assert all(UUID(ticket["run"]["id"]) for ticket in page["tickets"])
        seen += [ticket["number"] for ticket in page["tickets"]]
        path = page["next"]
    assert seen == [number for number in reversed(made) if number != made[2]]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "before=-1", f"before={2**63}", "status=open"])
def test_lists_that_are_refused(api: Caller, query: str) -> None:
    answer = api.get(f"/tickets?{query}")
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["field"] == query.split("=")[0]


@pytest.mark.parametrize(("method", "path", "status"), [("DELETE", "/tickets", 405), ("GET", "/nothing", 404)])
def test_other_addresses_answer_in_json(api: Caller, method: str, path: str, status: int) -> None:
    headers = {"Authorization": f"Bearer {api.token}"}
    answer = api.client.open(f"/api/v1{path}", method=method, headers=headers)
    assert (answer.status_code, answer.get_json()["status"]) == (status, status)
