"""A ticket taken in by hand."""

import re

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select

from app.bootstrap import Container
from app.runs.models import Run
from app.tickets.models import Customer, Ticket, TicketMessage
from tests.conftest import Login
from tests.web.pages import csrf, text_of

FIELDS = {
    "customer_id": "C-77",
    "customer_name": "林晓棠",
    "channel": "phone",
    "subject": "券用不了",
    "content": "第一行\r\n第二行",
}


@pytest.fixture
def agent(login: Login) -> FlaskClient:
    return login("agent")


def key_of(page: str) -> str:
    found = re.search(r'name="idempotency_key" value="([^"]+)"', page)
    assert found
    return found.group(1)


def take(client: FlaskClient, key: str, **changed: str):
    return client.post("/tickets/new", data=FIELDS | {"csrf_token": csrf(client), "idempotency_key": key} | changed)


def test_a_ticket_is_taken_in_and_opened(agent: FlaskClient, container: Container) -> None:
    answer = take(agent, key_of(text_of(agent.get("/tickets/new"))))
    assert answer.status_code == 303
    assert re.fullmatch(r"/tickets/\d+", answer.headers["Location"])
    with container.sessions() as session:
        ticket = session.scalars(select(Ticket)).one()
        assert (ticket.channel, ticket.subject) == ("phone", "券用不了")
        assert session.scalars(select(TicketMessage.body)).one() == "第一行\n第二行"
        assert session.scalars(select(Customer.external_id)).one() == "C-77"
        assert session.scalar(select(func.count()).select_from(Run)) == 1
    assert "已建立" in text_of(agent.get(answer.headers["Location"]))


def test_a_second_click_finds_the_first_ticket(agent: FlaskClient, container: Container) -> None:
    key = key_of(text_of(agent.get("/tickets/new")))
    first, second = take(agent, key), take(agent, key)
    assert first.headers["Location"] == second.headers["Location"]
    with container.sessions() as session:
        assert session.scalar(select(func.count()).select_from(Ticket)) == 1


def test_the_same_form_with_other_words_is_asked_about(agent: FlaskClient, container: Container) -> None:
    key = key_of(text_of(agent.get("/tickets/new")))
    take(agent, key)
    page = text_of(take(agent, key, subject="另一件事"), 422)
    assert key_of(page) != key
    assert "另一件事" in page


def test_two_people_may_use_the_same_key(login: Login, container: Container) -> None:
    for name in ("agent", "other"):
        assert take(login(name), "the-same-key").status_code == 303
    with container.sessions() as session:
        assert session.scalar(select(func.count()).select_from(Ticket)) == 2


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("customer_id", "", "此项必填"),
        ("customer_id", "中文", "只能用字母"),
        ("customer_id", "x" * 65, "最多64个字"),
        ("subject", " \t", "此项必填"),
        ("subject", "x" * 201, "最多200个字"),
        ("subject", "a\x00b", "控制字符"),
        ("content", "　", "此项必填"),
        ("content", "x" * 10_001, "最多10000个字"),
        ("channel", "fax", "请从这些值里选一个"),
        ("idempotency_key", "short", "幂等|可打印"),
    ],
)
def test_a_fault_is_named_beside_its_field_and_the_rest_is_kept(
    agent: FlaskClient, container: Container, field: str, value: str, words: str
) -> None:
    key = key_of(text_of(agent.get("/tickets/new")))
    page = text_of(take(agent, key, **{field: value}), 422)
    assert re.search(words, page)
    assert 'value="林晓棠"' in page
    if field not in ("idempotency_key", "channel"):
        assert f'id="{field}-error"' in page
        assert f'aria-describedby="{field}-error"' in page
        assert key_of(page) == key
    with container.sessions() as session:
        assert session.scalar(select(func.count()).select_from(Ticket)) == 0


def test_what_was_typed_comes_back_as_text(agent: FlaskClient) -> None:
    page = text_of(
        take(agent, "a-fresh-key", subject='"><script>x</script>', content="</textarea><b>", customer_id=""), 422
    )
    assert "<script>x" not in page
    assert "</textarea><b>" not in page
