"""GET /live over HTTP: one stream a page, resumed by number, for people who are signed in."""

import re
from collections.abc import Iterator

import orjson
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.bootstrap import Container
from app.clock import monotonic
from app.httpkit.sse import frame, last_event_id
from app.live.publisher import draft_channel
from app.runs.models import EventType, RunStatus
from app.staff.models import Role
from tests.conftest import Login
from tests.factories import make_ticket
from tests.live.conftest import Happen
from tests.review.factories import Desk, make_desk

LIMIT_S = 20


@pytest.fixture
def desk(container: Container) -> Iterator[Desk]:
    yield make_desk(container, status=RunStatus.RUNNING, draft=False)
    container.hub.close()


@pytest.fixture
def agent(login: Login) -> FlaskClient:
    return login("agent")


class Stream:
    """Reads the frames of an open stream."""

    def __init__(self, client: FlaskClient, query: str, last: int | None = None) -> None:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": str(last)} if last is not None else {})
        self.answer: TestResponse = client.get(f"/live?{query}", headers=headers, buffered=False)
        self._chunks = iter(self.answer.response)

    def frame(self) -> str:
        """Return the next frame that is not a heartbeat; fail when nothing comes but heartbeats."""
        ends_at = monotonic() + LIMIT_S
        for chunk in self._chunks:
            assert monotonic() < ends_at, f"no frame within {LIMIT_S} s"
            text = chunk if isinstance(chunk, str) else chunk.decode()
            if not text.startswith(":"):
                return text
        raise AssertionError("the stream ended")

    def until(self, wanted: str) -> str:
        """Return the first frame that holds `wanted`."""
        while wanted not in (text := self.frame()):
            pass
        return text

    def close(self) -> None:
        self.answer.close()


def number_of(text: str) -> int:
    found = re.search(r"^id: (\d+)$", text, re.M)
    assert found, text
    return int(found.group(1))


def test_who_is_not_signed_in_gets_401_and_no_redirect(client: FlaskClient, desk: Desk) -> None:
    for headers in ({}, {"Accept": "text/html, text/event-stream"}, {"HX-Request": "true"}):
        assert client.get(f"/live?ticket={desk.ticket_id}", headers=headers).status_code == 401


def test_what_is_not_there_or_not_theirs_is_refused(agent: FlaskClient, desk: Desk) -> None:
    assert agent.get("/live?ticket=01a22cc1-c2f4-7762-beb5-0fc72c4ba571").status_code == 404
    assert agent.get("/live?knowledge=1").status_code == 403


def test_proxies_are_told_not_to_hold_it_back(agent: FlaskClient, desk: Desk) -> None:
    stream = Stream(agent, f"ticket={desk.ticket_id}")
    headers = stream.answer.headers
    assert headers["Content-Type"].startswith("text/event-stream")
    assert headers["Cache-Control"] == "no-cache, no-transform"
    assert headers["X-Accel-Buffering"] == "no"
    stream.close()


def test_events_change_their_regions_and_carry_the_number(agent: FlaskClient, desk: Desk, happen: Happen) -> None:
    stream = Stream(agent, f"ticket={desk.ticket_id}&after=1")
    assert "#inbox-list" in stream.frame()
    happen(desk, 1, EventType.STEP_STARTED)
    text = stream.until('hx-target="#timeline"')
    assert number_of(text) == 2
    assert 'hx-target="#ticket-side"' not in text
    assert all(line.startswith(("data: ", "id: ", "retry: ")) for line in text.strip().split("\n"))
    happen(desk, 1, EventType.DRAFT_READY)
    assert number_of(stream.until('hx-target="#ticket-side"')) == 3
    stream.close()


def test_a_page_that_comes_back_hears_what_it_missed_and_nothing_twice(
    agent: FlaskClient, desk: Desk, happen: Happen, container: Container
) -> None:
    happen(desk, 3)
    container.redis.flushall()
    late = Stream(agent, f"ticket={desk.ticket_id}&after=1")
    assert number_of(late.until('hx-target="#desk"')) == 4
    late.close()
    again = Stream(agent, f"ticket={desk.ticket_id}&after=1", last=4)
    assert 'hx-target="#desk"' not in again.frame()
    happen(desk, 1)
    assert number_of(again.until('hx-target="#desk"')) == 5
    again.close()


def test_a_growing_draft_is_sent_whole_and_without_a_number(
    agent: FlaskClient, desk: Desk, container: Container
) -> None:
    stream = Stream(agent, f"ticket={desk.ticket_id}&after=1")
    stream.frame()
    assert container.hub.wait_until_ready(10)
    said = orjson.dumps({"run": str(desk.run_id), "text": "您好\n<b>粗</b>"})
    container.redis.publish(draft_channel(desk.thread_id), said)
    text = stream.until(f'hx-target="#draft-live-{desk.run_id}"')
    assert "id: " not in re.sub(r"data: .*", "", text)
    assert "&lt;b&gt;粗" in text
    stream.close()


def test_another_ticket_changes_its_row_only(
    agent: FlaskClient, desk: Desk, happen: Happen, container: Container
) -> None:
    other = make_ticket(container, customer="C-9")
    stream = Stream(agent, f"ticket={desk.ticket_id}&after=1")
    stream.frame()
    assert container.hub.wait_until_ready(10)
    happen(other)
    text = stream.until(f"ticket-row-{other.ticket_id}")
    assert 'hx-target="#desk"' not in text
    stream.close()


def test_documents_reach_the_knowledge_page(login: Login, desk: Desk, container: Container) -> None:
    stream = Stream(login("lead", Role.SUPERVISOR), "knowledge=1")
    assert "#doc-list" in stream.frame()
    stream.close()


@pytest.mark.parametrize(
    ("header", "fallback", "number"),
    [
        ("7", "3", 7),
        (None, "3", 3),
        ("", "3", 3),
        ("x", "3", 3),
        ("-1", None, 0),
        ("٣", None, 0),
        ("9" * 40, "2", 2),
        (None, None, 0),
    ],
)
def test_the_number_to_go_on_from(header: str | None, fallback: str | None, number: int) -> None:
    assert last_event_id(header, fallback) == number


def test_a_frame_keeps_every_line_and_breaks_at_no_other_character() -> None:
    text = frame("a\r\nb\u2028c\rd", event_id=3, event="x", retry_ms=5)
    assert text == "id: 3\nevent: x\nretry: 5\ndata: a\ndata: b\u2028c\ndata: d\n\n"
