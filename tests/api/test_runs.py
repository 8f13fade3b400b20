"""Runs over the API: shown, stopped, followed to their end; never approved."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from flask import Flask
from sqlalchemy import select, update
from werkzeug.test import TestResponse

from app.bootstrap import Container
from app.ids import new_id
from app.live.publisher import thread_stream
from app.review import service
from app.runs.events import NewEvent, append_events, lock_thread
from app.runs.executor import SKILL_TIMED_OUT
from app.runs.models import EventType, Run, RunStatus
from app.staff.models import AuditEntry
from tests.api.caller import Caller
from tests.review.factories import DRAFT_TEXT, make_desk


def test_a_run_with_its_draft(api: Caller, container: Container) -> None:
    desk = make_desk(container)
    run = api.get(f"/runs/{desk.run_id}").get_json()
    assert (run["status"], run["ticket_id"]) == ("waiting_for_review", str(desk.ticket_id))
    assert run["draft"]["text"] == DRAFT_TEXT
    assert run["draft"]["citations"][0]["doc_title"] == "优惠券使用说明"


def test_why_a_run_failed_is_told_with_its_places_filled(api: Caller, container: Container) -> None:
    desk = make_desk(container, status=RunStatus.FAILED, draft=False)
    detail = {"skill": "draft_reply", "limit_s": 60}
    why = {"error_code": "skill_timed_out", "error_message": SKILL_TIMED_OUT, "error_detail": detail}
    with container.transaction() as session:
        session.execute(update(Run).values(why))
    run = api.get(f"/runs/{desk.run_id}").get_json()
    assert (run["error_code"], run["error_message"]) == (
        "skill_timed_out",
        "A step took too long: draft_reply was given 60 seconds.",
    )


def test_cancel(api: Caller, container: Container) -> None:
    desk = make_desk(container, status=RunStatus.RUNNING)
    answer = api.post(f"/runs/{desk.run_id}/cancel")
    assert (answer.status_code, answer.get_json()["status"]) == (200, "cancelled")
    again = api.post(f"/runs/{desk.run_id}/cancel", Accept_Language="en")
    problem = again.get_json()
    assert (again.status_code, problem["type"]) == (409, "urn:draftdesk:error:run_moved")
    assert (problem["moved"]["to"], problem["moved"]["by"]) == ("cancelled", "shop-backend")
    assert re.fullmatch(r"shop-backend stopped this draft at \d\d:\d\d\.", problem["detail"])
    with container.transaction() as session:
        entry = session.scalars(select(AuditEntry)).one()
        assert (entry.action, entry.staff_id, entry.detail) == ("run_cancelled", None, {"token": "shop-backend"})


@pytest.mark.parametrize("path", ["", "/cancel", "/events"])
def test_runs_that_do_not_exist(api: Caller, path: str) -> None:
    ask = api.post if path == "/cancel" else api.get
    for run_id in (new_id(), "1"):
        answer = ask(f"/runs/{run_id}{path}")
        assert (answer.status_code, answer.get_json()["status"]) == (404, 404)


def test_no_address_approves(app: Flask) -> None:
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/api/")]
    writes = {rule.rule for rule in rules if rule.methods and rule.methods & {"POST", "PUT", "PATCH", "DELETE"}}
    assert writes == {
        "/api/v1/tickets",
        "/api/v1/tickets/<ref>/messages",
        "/api/v1/tickets/<ref>/status",
        "/api/v1/runs/<uuid:run_id>/cancel",
    }


def happen(container: Container, ticket_id: UUID, run_id: UUID, *types: EventType) -> None:
    with container.transaction() as session:
        thread = lock_thread(session, ticket_id)
        append_events(session, thread, [NewEvent(kind, run_id) for kind in types])


def frames(answer: TestResponse) -> Iterator[tuple[int, str, dict[str, object]]]:
    """Yield (id, event, data) of each message as it comes; comments are skipped."""
    buffer = ""
    for piece in answer.iter_encoded():
        buffer += piece.decode()
        while "\n\n" in buffer:
            message, buffer = buffer.split("\n\n", 1)
            if message.startswith(":"):
                continue
            fields = dict(line.split(": ", 1) for line in message.split("\n"))
            yield int(fields["id"]), fields["event"], json.loads(fields["data"])


def test_a_run_is_followed_to_its_end(api: Caller, container: Container) -> None:
    desk = make_desk(container, status=RunStatus.RUNNING)
    answer = api.get(f"/runs/{desk.run_id}/events")
    assert answer.mimetype == "text/event-stream"
    stream = frames(answer)
    assert next(stream)[:2] == (1, "run_created")
    assert container.hub.wait_until_ready(10)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(happen, container, desk.ticket_id, desk.run_id, EventType.RUN_STARTED, EventType.DRAFT_READY)
        assert [next(stream)[:2], next(stream)[:2]] == [(2, "run_started"), (3, "draft_ready")]
    with container.transaction() as session:
        service.cancel_run(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id)
    rest = list(stream)
    assert [(seq, event) for seq, event, _ in rest] == [(4, "run_cancelled")]
    assert rest[0][2] == {
        "seq": 4,
        "type": "run_cancelled",
        "run_id": str(desk.run_id),
        "ticket_id": str(desk.ticket_id),
        "payload": {"by": str(desk.staff_id)},
    }


@pytest.mark.parametrize("wiped", [False, True])
def test_a_stream_goes_on_where_it_was_lost(api: Caller, container: Container, wiped: bool) -> None:
    desk = make_desk(container, status=RunStatus.RUNNING)
    happen(container, desk.ticket_id, desk.run_id, EventType.RUN_STARTED, EventType.DRAFT_READY, EventType.RUN_FAILED)
    if wiped:
        container.redis.delete(thread_stream(desk.thread_id))
    for query, headers in (("", {"Last_Event_ID": "2"}), ("?after=2", {})):
        stream = frames(api.get(f"/runs/{desk.run_id}/events{query}", **headers))
        assert [(seq, event) for seq, event, _ in stream] == [(3, "draft_ready"), (4, "run_failed")]
    assert api.get(f"/runs/{desk.run_id}/events", Last_Event_ID="4").status_code == 204


def test_events_of_another_run_are_not_in_it(api: Caller, container: Container) -> None:
    desk = make_desk(container, status=RunStatus.FAILED)
    happen(container, desk.ticket_id, desk.run_id, EventType.RUN_FAILED)
    with container.transaction() as session:
        newer = service.regenerate(
            session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, hint="", plan=container.run_plan()
        )
    happen(container, desk.ticket_id, newer, EventType.RUN_FAILED)
    assert [event for _, event, _ in frames(api.get(f"/runs/{desk.run_id}/events"))] == ["run_created", "run_failed"]
    assert [seq for seq, _, _ in frames(api.get(f"/runs/{newer}/events"))] == [3, 4]
