"""Messages and the status of a ticket over the API."""

from datetime import datetime

import pytest
from sqlalchemy import select

from app.bootstrap import Container
from app.review.ticket_state import set_ticket_status
from app.runs.models import Event, EventType, Run
from app.staff.models import AuditEntry
from app.tickets.models import TicketStatus
from tests.api.caller import Caller
from tests.factories import make_staff, make_ticket
from tests.intake.writing import end_run, set_status


def write(api: Caller, ref: object, key: str = "shop-msg-1", **fields: object) -> tuple[int, dict[str, object]]:
    answer = api.post(f"/tickets/{ref}/messages", {"content": "还没到账", **fields}, Idempotency_Key=key)
    return answer.status_code, answer.get_json()


def test_a_message_by_number_or_id_once_a_key(api: Caller, container: Container) -> None:
    made = make_ticket(container)
    status, first = write(api, made.number)
    assert status == 201
    assert first == {
        "id": first["id"],
        "ticket_id": str(made.ticket_id),
        "ticket_number": made.number,
        "number": 2,
        "run_id": str(made.run_id),
        "created": True,
        "follow_up": None,
        "url": f"/api/v1/tickets/{made.number}",
        "events_url": f"/api/v1/runs/{made.run_id}/events",
    }
    assert write(api, made.ticket_id) == (200, first | {"created": False})
    assert write(api, made.number, content="别的")[1]["type"] == "urn:draftdesk:error:key_reused"
    said = api.get(f"/tickets/{made.number}").get_json()["messages"]
    assert [(message["number"], message["body"]) for message in said][1:] == [(2, "还没到账")]


@pytest.mark.parametrize("closed_for_good", [False, True])
def test_the_token_that_brought_a_message_is_on_record(
    api: Caller, container: Container, closed_for_good: bool
) -> None:
    made = make_ticket(container)
    if closed_for_good:
        end_run(container, made.run_id)
        set_status(container, made.ticket_id, TicketStatus.CLOSED, days_ago=30)
    _, answer = write(api, made.number)
    write(api, made.number)
    with container.transaction() as session:
        entry = session.scalars(select(AuditEntry)).one()
        detail = {"message": answer["id"], "token": "shop-backend"}
        assert (entry.action, entry.staff_id, entry.detail) == ("message_recorded", None, detail)
        payload = session.scalars(select(Event.payload).where(Event.type == EventType.MESSAGE_RECEIVED)).one()
        assert (payload["message"], payload["token"]) == (answer["id"], "shop-backend")


def test_a_run_of_the_window_waits(api: Caller, container: Container) -> None:
    made = make_ticket(container)
    end_run(container, made.run_id)
    _, answer = write(api, made.number)
    with container.transaction() as session:
        run = session.scalars(select(Run).order_by(Run.id.desc())).first()
        assert run is not None
        assert str(run.id) == answer["run_id"]
        assert run.not_before is not None
        assert (run.not_before - run.created_at).total_seconds() == container.settings.message_window_s


def test_a_follow_up_is_named(api: Caller, container: Container) -> None:
    made = make_ticket(container)
    end_run(container, made.run_id)
    set_status(container, made.ticket_id, TicketStatus.CLOSED, days_ago=30)
    _, answer = write(api, made.number)
    follow_up = answer["follow_up"]
    assert isinstance(follow_up, dict)
    assert (answer["ticket_number"], answer["number"]) == (made.number, 1)
    assert follow_up["number"] == made.number + 1
    assert api.get(follow_up["url"].removeprefix("/api/v1")).get_json()["id"] == follow_up["id"]


def test_every_fault_of_a_message_is_named(api: Caller, container: Container) -> None:
    made = make_ticket(container)
    status, problem = write(api, made.number, key="short", content="", contents="x")
    errors = problem["errors"]
    assert isinstance(errors, list)
    assert status == 422
    assert [error["field"] for error in errors] == ["contents", "content", "idempotency_key"]
    assert write(api, 999)[0] == 404


def test_a_ticket_is_moved_and_a_second_time_changes_nothing(api: Caller, container: Container) -> None:
    made = make_ticket(container)
    for _ in range(2):
        answer = api.post(f"/tickets/{made.number}/status", {"status": "closed"})
        assert answer.status_code == 200
        assert (answer.get_json()["status"], answer.get_json()["run"]["status"]) == ("closed", "cancelled")
    with container.transaction() as session:
        entry = session.scalars(select(AuditEntry)).one()
        detail = {"source": "pending", "target": "closed", "token": "shop-backend"}
        assert (entry.action, entry.staff_id, entry.detail) == ("ticket_moved", None, detail)
    assert api.post(f"/tickets/{made.ticket_id}/status", {"status": "pending"}).get_json()["status"] == "pending"


def test_a_move_that_can_not_be_says_so_and_who_made_the_last_one(api: Caller, container: Container) -> None:
    made = make_ticket(container)
    staff_id = make_staff(container, "lead")
    with container.transaction() as session:
        set_ticket_status(session, ticket_id=made.ticket_id, target=TicketStatus.SPAM, staff_id=staff_id)
    answer = api.post(f"/tickets/{made.number}/status", {"status": "closed"})
    problem = answer.get_json()
    assert problem["detail"] == "工单不能由垃圾信息改为已关闭。"
    assert (answer.status_code, problem["status"], problem["type"]) == (409, 409, "urn:draftdesk:error:ticket_moved")
    assert (problem["moved"]["to"], problem["moved"]["by"]) == ("spam", "lead")
    assert datetime.fromisoformat(problem["moved"]["at"]).tzinfo is not None


def test_the_token_that_made_the_last_move_is_named(api: Caller, container: Container) -> None:
    made = make_ticket(container)
    api.post(f"/tickets/{made.number}/status", {"status": "closed"})
    problem = api.post(f"/tickets/{made.number}/status", {"status": "resolved"}).get_json()
    assert problem["detail"] == "工单不能由已关闭改为已解决。"
    assert (problem["moved"]["to"], problem["moved"]["by"]) == ("closed", "shop-backend")


@pytest.mark.parametrize("body", [{}, {"status": "processing"}, {"status": 7}, {"status": "closed", "why": "x"}])
def test_moves_that_are_refused(api: Caller, container: Container, body: dict[str, object]) -> None:
    made = make_ticket(container)
    assert api.post(f"/tickets/{made.number}/status", body).status_code == 422
    assert api.get(f"/tickets/{made.number}").get_json()["status"] == "pending"
