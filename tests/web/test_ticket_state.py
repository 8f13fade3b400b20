"""What a person writes down for the customer and decides about the ticket, on its page."""

import re
from html import unescape

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select, update
from werkzeug.test import TestResponse

from app.bootstrap import Container
from app.delivery.models import Delivery
from app.review import service
from app.review.ticket_page import ticket_page
from app.review.ticket_state import set_ticket_status
from app.runs.models import Run, RunStatus
from app.staff.models import Role
from app.tickets.models import Ticket, TicketMessage, TicketStatus
from app.web.moved_words import notice
from app.web.ticket_words import ways_on
from tests.conftest import Login
from tests.factories import make_staff
from tests.intake.writing import end_run, runs_of, set_status, ticket_of, write
from tests.review.factories import DRAFT_TEXT, Desk, make_desk
from tests.web.test_ticket_page import form_of, html, post


@pytest.fixture
def desk(container: Container) -> Desk:
    return make_desk(container)


@pytest.fixture
def agent(login: Login) -> FlaskClient:
    client = login("agent")
    client.set_cookie("locale", "en")
    return client


def page_of(client: FlaskClient, number: int) -> str:
    return html(client.get(f"/tickets/{number}"))


def key_in(markup: str) -> str:
    found = re.search(r'name="idempotency_key" value="([^"]+)"', markup)
    assert found, markup[:500]
    return found.group(1)


def seen_in(markup: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in re.findall(r'name="(seen_\w+)" value="([^"]*)"', markup)}


def offered(markup: str) -> list[str]:
    return re.findall(r'name="status" value="(\w+)"', markup[markup.index('id="ticket-menu"') :])


def move(client: FlaskClient, desk: Desk, status: str, seen: dict[str, str] | None = None) -> TestResponse:
    return post(client, desk, "status", status=status, **(seen or seen_in(page_of(client, desk.number))))


def test_what_a_customer_said_is_written_down_once(container: Container, agent: FlaskClient, desk: Desk) -> None:
    key = key_in(page_of(agent, desk.number))
    fields = {"idempotency_key": key, "content": "客户来电：\r\n还没到账"}
    first = html(post(agent, desk, "messages", **fields))
    assert "written down by agent" in first
    assert 'id="content"' in first
    assert key_in(first) != key
    assert re.findall(r'<hx-partial hx-target="([^"]+)"', first) == [
        "#record-place",
        "#notice",
        "#ticket-head",
        "#timeline",
        "#ticket-side",
    ], "desk and actions come by the stream, which spares what is typed"
    html(post(agent, desk, "messages", **fields))
    with container.transaction() as session:
        said = session.scalars(select(TicketMessage.body).where(TicketMessage.number > 1)).all()
    assert said == ["客户来电：\n还没到账"]
    assert [run.status for run in runs_of(container, desk.ticket_id)] == ["superseded", "created"]


def test_what_can_not_be_taken_stays_in_the_form(container: Container, agent: FlaskClient, desk: Desk) -> None:
    key = key_in(page_of(agent, desk.number))
    empty = post(agent, desk, "messages", idempotency_key=key, content="  ")
    assert empty.status_code == 422
    assert "This field is required." in empty.get_data(as_text=True)
    assert key_in(empty.get_data(as_text=True)) == key
    html(post(agent, desk, "messages", idempotency_key=key, content="第一句"))
    changed = post(agent, desk, "messages", idempotency_key=key, content="第二句 <b>")
    said = changed.get_data(as_text=True)
    assert changed.status_code == 422
    assert "第二句 &lt;b&gt;</textarea>" in said
    assert 'role="alert"' in said
    html(post(agent, desk, "messages", idempotency_key=key_in(said), content="第二句"))
    with container.transaction() as session:
        assert session.scalars(select(func.count()).select_from(TicketMessage)).one() == 3


def test_a_message_on_a_ticket_closed_for_too_long_leads_to_the_new_one(
    container: Container, agent: FlaskClient, desk: Desk
) -> None:
    end_run(container, desk.run_id)
    set_status(container, desk.ticket_id, TicketStatus.CLOSED, days_ago=30)
    key = key_in(page_of(agent, desk.number))
    said = html(post(agent, desk, "messages", idempotency_key=key, content="又来了"))
    new = desk.number + 1
    assert f'href="/tickets/{new}"' in said
    assert f"goes on as #{new}" in page_of(agent, desk.number)
    assert f"goes on from #{desk.number}" in page_of(agent, new)


def test_an_open_page_is_told_that_the_customer_has_written(
    container: Container, agent: FlaskClient, desk: Desk
) -> None:
    fields = form_of(agent, desk)
    post(agent, desk, "composer", body="我写到一半")
    write(container, desk.ticket_id)
    regions = html(agent.get(f"/tickets/{desk.number}/regions", headers={"HX-Request": "true"}))
    assert re.search(r'data-notice="The customer has written again, at \d\d:\d\d."', regions)
    assert "我写到一半" in regions
    assert "Waits a moment in case the customer goes on" in regions
    late = post(agent, desk, "approve", **fields, text=DRAFT_TEXT)
    assert late.status_code == 409
    assert re.search(r"The customer has written again, at \d\d:\d\d.", late.get_data(as_text=True))
    assert '#desk"' not in late.get_data(as_text=True)


def test_a_person_who_writes_by_hand_keeps_editor_and_words(
    container: Container, agent: FlaskClient, desk: Desk
) -> None:
    html(post(agent, desk, "manual", run_id=str(desk.run_id)))
    post(agent, desk, "composer", body="我自己写的")
    write(container, desk.ticket_id)
    assert "我自己写的</textarea>" in page_of(agent, desk.number)


def test_a_reply_taken_back_is_said_so_and_its_words_are_there(
    container: Container, agent: FlaskClient, desk: Desk
) -> None:
    html(post(agent, desk, "approve", **form_of(agent, desk), text=DRAFT_TEXT + "祝好"))
    html(move(agent, desk, "closed"))
    page = page_of(agent, desk.number)
    assert "Taken back before it left" in page
    assert "agent closed this ticket at" in page
    html(move(agent, desk, "pending"))
    again = page_of(agent, desk.number)
    assert 'data-line="line-regenerate"' in again
    html(post(agent, desk, "manual", run_id=str(desk.run_id)))
    assert f"{DRAFT_TEXT}祝好</textarea>" in page_of(agent, desk.number)


@pytest.mark.parametrize(
    ("status", "ways"),
    [
        ("pending", ["resolved", "closed", "spam"]),
        ("processing", ["resolved", "closed", "spam"]),
        ("waiting_for_customer", ["resolved", "closed", "spam"]),
        ("resolved", ["pending", "closed", "spam"]),
        ("closed", ["pending", "spam"]),
        ("spam", ["pending"]),
    ],
)
def test_the_menu_offers_what_can_be(
    container: Container, agent: FlaskClient, desk: Desk, status: str, ways: list[str]
) -> None:
    if status not in ("pending", "processing", "waiting_for_customer"):
        end_run(container, desk.run_id)
    set_status(container, desk.ticket_id, TicketStatus(status))
    assert offered(page_of(agent, desk.number)) == ways
    html(move(agent, desk, ways[0]))
    assert ticket_of(container, desk.ticket_id).status == ways[0]


def test_ending_a_ticket_answers_with_the_whole_page(container: Container, agent: FlaskClient, desk: Desk) -> None:
    said = html(move(agent, desk, "resolved"))
    assert "agent resolved this ticket at" in said
    assert "reply-text" not in said
    assert 'data-line="line-regenerate"' not in said
    assert [run.status for run in runs_of(container, desk.ticket_id)] == ["cancelled"]
    assert "Spam" in html(move(agent, desk, "spam"))


def test_the_second_person_is_told_who_ended_the_ticket(
    container: Container, login: Login, agent: FlaskClient, desk: Desk
) -> None:
    login("lead", Role.SUPERVISOR)
    seen = seen_in(page_of(agent, desk.number))
    with container.transaction() as session:
        lead = make_staff(container, "lead")
        set_ticket_status(session, ticket_id=desk.ticket_id, target=TicketStatus.SPAM, staff_id=lead)
        page = ticket_page(session, desk.number, staff_id=desk.staff_id)
    late = move(agent, desk, "closed", seen)
    for refused in (late, post(agent, desk, "regenerate", run_id=str(desk.run_id))):
        assert refused.status_code == 409
        assert re.search(r"lead marked this ticket as spam at \d\d:\d\d\.", refused.get_data(as_text=True))
    with agent.application.test_request_context():
        assert "lead" in notice(page)
    assert [target for target, _, _ in ways_on(page)] == ["pending"]


def test_a_message_that_was_not_seen_is_not_closed_away(container: Container, agent: FlaskClient, desk: Desk) -> None:
    seen = seen_in(page_of(agent, desk.number))
    write(container, desk.ticket_id)
    late = move(agent, desk, "closed", seen)
    assert late.status_code == 409
    assert "The customer has written again. Read that first." in late.get_data(as_text=True)
    assert ticket_of(container, desk.ticket_id).status == "pending"


@pytest.mark.parametrize("status", ["processing", "", "gone"])
def test_a_status_that_nobody_may_choose(agent: FlaskClient, desk: Desk, status: str) -> None:
    assert move(agent, desk, status).status_code == 422


def test_a_crossed_reply_and_an_escalation_show(container: Container, agent: FlaskClient, desk: Desk) -> None:
    assert "Reply crossed" not in page_of(agent, desk.number)
    end_run(container, desk.run_id, RunStatus.RUNNING)
    with container.transaction() as session:
        session.execute(
            update(Ticket).values(reply_crossed_at=func.now(), escalated_at=func.now(), escalation_reason="涉及安全")
        )
    page = page_of(agent, desk.number)
    head = page[page.index('id="ticket-head"') : page.index('id="ticket-body"')]
    assert "Reply crossed" in head
    assert "涉及安全" in head
    assert "Reply crossed" in page[page.index(f'id="ticket-row-{desk.ticket_id}"') :]


def test_a_ticket_opened_again_can_be_answered_again(container: Container, agent: FlaskClient, desk: Desk) -> None:
    html(post(agent, desk, "approve", **form_of(agent, desk), text=DRAFT_TEXT))
    with container.transaction() as session:
        session.execute(update(Delivery).values(state="sent", sent_at=func.now()))
    set_status(container, desk.ticket_id, TicketStatus.RESOLVED)
    assert "the ticket is resolved" in page_of(agent, desk.number)
    html(move(agent, desk, "pending"))
    page = page_of(agent, desk.number)
    assert 'data-line="line-regenerate"' in page
    with container.transaction() as session:
        assert session.scalars(select(Run.status)).all() == [RunStatus.COMPLETED]
        service.regenerate(
            session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, hint="", plan=container.run_plan()
        )


def test_who_ended_a_ticket_is_told_between_the_messages_and_of_the_run(
    container: Container, agent: FlaskClient, desk: Desk
) -> None:
    for target, words in (("closed", "closed the ticket"), ("pending", "reopened the ticket")):
        assert words in html(move(agent, desk, target))
    write(container, desk.ticket_id, "还在吗")
    page = page_of(agent, desk.number)
    timeline = page[page.index('id="timeline"') : page.index('id="record-place"')]
    places = [timeline.index(words) for words in ("closed the ticket", "reopened the ticket", "还在吗")]
    assert places == sorted(places)
    assert timeline.count("closed the ticket") == 2, "once by itself, and once of the run that it stopped"
    assert "stopped the draft" not in timeline


def test_a_source_that_closes_a_ticket_is_told_by_its_token(
    container: Container, agent: FlaskClient, desk: Desk
) -> None:
    with container.transaction() as session:
        ticket_id, target = desk.ticket_id, TicketStatus.SPAM
        set_ticket_status(session, ticket_id=ticket_id, target=target, staff_id=None, token="shop")
    assert page_of(agent, desk.number).count("shop marked the ticket as spam") == 2
