"""The ticket page over HTTP: every state renders, every action answers with regions, strangers' text stays text."""

import re
from html import unescape

import pytest
from flask.testing import FlaskClient
from sqlalchemy import event, select, text, update
from werkzeug.test import TestResponse

from app.agent.values import Category, Classification, Priority, SearchResult, Sufficiency, Verdict
from app.bootstrap import Container
from app.delivery.models import Delivery, DeliveryState
from app.ids import new_id
from app.knowledge.models import DocState, KnowledgeDoc
from app.review import service
from app.review.ticket_page import ticket_page
from app.runs.models import Run, RunStatus, Step
from app.staff.models import Role
from app.tickets.composer import ComposerDraft
from app.tickets.models import Customer, Ticket
from app.web.browser_findings import browser_findings
from app.web.ticket_regions import Region, dirty, editor_of
from tests.conftest import Login
from tests.factories import make_staff, make_ticket
from tests.review.factories import DRAFT_TEXT, Desk, add_draft, make_desk, make_document

HOSTILE = '<script>alert(1)</script> ![x](https://evil.example/p.png) <hx-partial hx-target="#desk">gone</hx-partial>'


@pytest.fixture
def desk(container: Container) -> Desk:
    return make_desk(container)


@pytest.fixture
def agent(login: Login) -> FlaskClient:
    return login("agent")


def html(response: TestResponse) -> str:
    assert response.status_code == 200, response.get_data(as_text=True)[:2000]
    return response.get_data(as_text=True)


def token(client: FlaskClient) -> dict[str, str]:
    """Return the header that pages send with every request of theirs."""
    page = client.get("/", headers={"Accept": "text/html"}).get_data(as_text=True)
    found = re.search(r'X-CSRFToken&#34;: &#34;([^&]+)|"X-CSRFToken": "([^"]+)"', page)
    assert found, page[:500]
    return {"X-CSRFToken": found.group(1) or found.group(2), "HX-Request": "true"}


def post(client: FlaskClient, desk: Desk, action: str, **fields: str) -> TestResponse:
    return client.post(f"/tickets/{desk.number}/{action}", data=fields, headers=token(client))


def form_of(client: FlaskClient, desk: Desk) -> dict[str, str]:
    """Return the editor's hidden fields as a browser would send them."""
    page = html(client.get(f"/tickets/{desk.number}"))
    form = page[page.index('id="review"') :]
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form[: form.index("</form>")])
    return {name: unescape(value) for name, value in fields}


def set_run(container: Container, desk: Desk, **values: object) -> None:
    with container.transaction() as session:
        session.execute(update(Run).where(Run.id == desk.run_id).values(**values))


@pytest.mark.parametrize(
    ("status", "draft", "shown"),
    [
        (RunStatus.CREATED, False, "data-stop"),
        (RunStatus.RUNNING, False, "data-stop"),
        (RunStatus.RETRYING, False, "data-stop"),
        (RunStatus.WAITING_FOR_REVIEW, True, "reply-text"),
        (RunStatus.WAITING_FOR_ESCALATION, True, "reply-text"),
        (RunStatus.WAITING_FOR_ESCALATION, False, "handover"),
        (RunStatus.FAILED, False, "is-bad"),
        (RunStatus.CANCELLED, False, "is-stopped"),
    ],
)
@pytest.mark.parametrize("locale", ["zh", "en"])
def test_every_state_renders(
    container: Container, login: Login, status: RunStatus, draft: bool, shown: str, locale: str
) -> None:
    desk = make_desk(container, status=status, draft=draft)
    agent = login("agent")
    agent.set_cookie("locale", locale)
    page = html(agent.get(f"/tickets/{desk.number}"))
    assert shown in page
    for region in Region:
        assert page.count(f'id="{region}"') == 1
    regions = html(agent.get(f"/tickets/{desk.number}/regions", headers={"HX-Request": "true"}))
    assert ["#notice", *(f"#{region}" for region in Region)] == re.findall(r'<hx-partial hx-target="([^"]+)"', regions)


def test_a_ticket_that_is_not_there_is_404_and_strangers_are_sent_to_sign_in(
    client: FlaskClient, agent: FlaskClient, desk: Desk
) -> None:
    assert agent.get("/tickets/999999").status_code == 404
    assert client.get(f"/tickets/{desk.number}", headers={"Accept": "text/html"}).status_code == 302
    assert client.post(f"/tickets/{desk.number}/approve").status_code in (400, 401)


def test_what_strangers_write_stays_text(container: Container, login: Login) -> None:
    desk = make_desk(container, draft=False)
    with container.transaction() as session:
        session.execute(update(Ticket).values(subject=HOSTILE))
        session.execute(update(Customer).values(name=HOSTILE))
        session.execute(text("UPDATE ticket_messages SET body = :body"), {"body": HOSTILE})
    add_draft(container, desk.run_id, HOSTILE)
    agent = login("agent")
    for path in (f"/tickets/{desk.number}", f"/tickets/{desk.number}/regions"):
        page = html(agent.get(path))
        assert "<script>alert" not in page
        assert "<img" not in page
        assert '<hx-partial hx-target="#desk">gone' not in page
        assert "alert(1)" in page


def test_approving_sends_once_and_shows_who(container: Container, agent: FlaskClient, desk: Desk) -> None:
    fields = form_of(agent, desk) | {"text": "您好，请换一件自营商品再试。"}
    first, second = post(agent, desk, "approve", **fields), post(agent, desk, "approve", **fields)
    for answer in (first, second):
        page = html(answer)
        assert 'id="sent"' in page
        assert "<ins>" in page or "<del>" in page
    with container.transaction() as session:
        assert len(session.scalars(select(Delivery)).all()) == 1


def test_the_second_person_is_told_who_was_first(
    container: Container, login: Login, agent: FlaskClient, desk: Desk
) -> None:
    lead = login("lead", Role.SUPERVISOR)
    mine, theirs = form_of(agent, desk), form_of(lead, desk)
    html(post(lead, desk, "approve", **theirs, text=DRAFT_TEXT))
    late = post(agent, desk, "approve", **mine, text=DRAFT_TEXT + "祝好")
    assert late.status_code == 409
    said = late.get_data(as_text=True)
    assert "lead" in said
    assert re.search(r"\d\d:\d\d", said)
    assert '#desk"' not in said  # the editor, and the text in it, stay


def test_a_draft_that_moved_is_refused_with_the_reason(container: Container, agent: FlaskClient, desk: Desk) -> None:
    fields = form_of(agent, desk)
    add_draft(container, desk.run_id, "另一份草稿。")
    late = post(agent, desk, "approve", **fields, text=DRAFT_TEXT)
    assert late.status_code == 409
    assert 'hx-target="#notice"' in late.get_data(as_text=True)


def test_findings_block_and_come_back_with_their_places(agent: FlaskClient, desk: Desk) -> None:
    fields = form_of(agent, desk)
    blocked = post(agent, desk, "approve", **fields, text="😀请联系 13812345678。")
    assert blocked.status_code == 422
    said = blocked.get_data(as_text=True)
    assert 'hx-target="#checks-strip"' in said
    checked = html(post(agent, desk, "check", text="😀请联系 13812345678。"))
    assert "13812345678" in checked
    assert 'hx-target="#checks-list"' in checked


def test_findings_are_counted_as_browsers_count() -> None:
    typed = "😀请联系 13812345678。"
    (finding,) = browser_findings(typed)
    units = typed.encode("utf-16-le")
    assert units[finding.start * 2 : finding.end * 2].decode("utf-16-le") == finding.text == "13812345678"


def test_what_was_typed_comes_back_until_a_newer_draft_has_come(
    container: Container, agent: FlaskClient, desk: Desk
) -> None:
    assert post(agent, desk, "composer", body="我写到一半").status_code == 204
    page = html(agent.get(f"/tickets/{desk.number}"))
    assert "我写到一半</textarea>" in page
    add_draft(container, desk.run_id, "更新的草稿。")
    page = html(agent.get(f"/tickets/{desk.number}"))
    assert "更新的草稿。</textarea>" in page
    assert 'data-kept="我写到一半"' in page


def test_typed_text_is_each_persons_own(container: Container, login: Login, agent: FlaskClient, desk: Desk) -> None:
    post(agent, desk, "composer", body="我的话")
    assert "我的话" not in html(login("lead").get(f"/tickets/{desk.number}"))


def test_regenerate_cancel_manual_and_escalate(container: Container, agent: FlaskClient, desk: Desk) -> None:
    run = str(desk.run_id)
    html(post(agent, desk, "escalate", run_id=run, reason="涉及安全"))
    assert "涉及安全" in html(agent.get(f"/tickets/{desk.number}"))
    html(post(agent, desk, "regenerate", run_id=run, hint="语气软一点"))
    with container.transaction() as session:
        fresh = session.scalars(select(Run).order_by(Run.id.desc())).first()
        assert fresh is not None
        assert (fresh.hint, fresh.retry_from) == ("语气软一点", desk.run_id)
    html(post(agent, desk, "cancel", run_id=str(fresh.id)))
    page = html(post(agent, desk, "manual", run_id=str(fresh.id)))
    assert 'id="reply-text"' in page
    assert post(agent, desk, "escalate", run_id=run, reason="x").status_code == 409
    assert post(agent, desk, "cancel", run_id="nonsense").status_code == 422


def test_escalating_without_a_reason_is_refused(agent: FlaskClient, desk: Desk) -> None:
    refused = post(agent, desk, "escalate", run_id=str(desk.run_id), reason="  ")
    assert refused.status_code == 422
    assert 'hx-target="#notice"' in refused.get_data(as_text=True)


@pytest.mark.parametrize("state", [DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.UNKNOWN])
def test_how_far_a_reply_has_got_is_shown(
    container: Container, agent: FlaskClient, desk: Desk, state: DeliveryState
) -> None:
    html(post(agent, desk, "approve", **form_of(agent, desk), text=DRAFT_TEXT))
    with container.transaction() as session:
        session.execute(update(Delivery).values(state=state))
    page = html(agent.get(f"/tickets/{desk.number}"))
    assert ("is-bad" in page[page.index('id="desk"') :]) == (state is not DeliveryState.SENT)


def test_steps_say_what_they_found(container: Container, agent: FlaskClient, desk: Desk) -> None:
    set_run(container, desk, status=RunStatus.RUNNING)
    found = Classification(priority=Priority.NORMAL, category=Category.REFUND, confidence=0.93, reasoning="x")
    verdict = Verdict(outcome=Sufficiency.SUFFICIENT, probability=0.9, reason="y")
    results = {
        "classify_ticket": found.model_dump(mode="json"),
        "search_knowledge": SearchResult(query="q", passages=(), verdict=verdict).model_dump(mode="json"),
        "draft_reply": {"an older": "shape"},
    }
    with container.transaction() as session:
        for number, (skill, output) in enumerate(results.items(), start=1):
            session.add(Step(run_id=desk.run_id, number=number, action_type="tool_call", skill=skill, input={}))
            session.flush()
            done = update(Step).where(Step.number == number).values(output=output, ended_at=text("now()"))
            session.execute(done)
    agent.set_cookie("locale", "en")
    page = html(agent.get(f"/tickets/{desk.number}"))
    assert "Refund, Normal, 93% sure" in page
    assert "0 passages found, enough to answer" in page


def test_the_number_of_statements_is_fixed(container: Container, agent: FlaskClient, desk: Desk) -> None:
    def count() -> int:
        statements: list[str] = []
        event.listen(container.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
        with container.transaction() as session:
            ticket_page(session, desk.number, staff_id=desk.staff_id)
        return len(statements)

    before = count()
    for _ in range(3):
        set_run(container, desk, status=RunStatus.CANCELLED)
        with container.transaction() as session:
            plan = container.run_plan(by=desk.staff_id)
            run_id = service.regenerate(session, ticket_id=desk.ticket_id, staff_id=desk.staff_id, hint="", plan=plan)
            session.execute(update(Run).values(status=RunStatus.CANCELLED))
        add_draft(container, run_id, "草稿")
        make_ticket(container)
    with container.transaction() as session:
        session.add(ComposerDraft(ticket_id=desk.ticket_id, staff_id=desk.staff_id, body="x"))
    assert count() == before <= 11


def test_priority_and_category_can_be_set_and_confirmed(container: Container, agent: FlaskClient, desk: Desk) -> None:
    with container.transaction() as session:
        session.execute(update(Ticket).values(priority="normal", priority_set_by="ai", version=4))
    page = html(agent.get(f"/tickets/{desk.number}"))
    head = page[page.index('id="ticket-head"') : page.index('id="ticket-body"')]
    assert 'name="confirm"' in head
    assert '<option value="normal" selected>' in head
    late = post(agent, desk, "class", version="3", priority="urgent", category="")
    assert late.status_code == 409
    assert 'name="version" value="4"' in late.get_data(as_text=True)
    done = html(post(agent, desk, "class", version="4", priority="urgent", category="invoice"))
    assert '<option value="urgent" selected>' in done
    assert '<option value="invoice" selected>' in done
    assert 'name="confirm"' not in done
    for wrong in ({"version": "x"}, {"version": "5", "priority": "asap"}, {"version": "9" * 30}):
        assert post(agent, desk, "class", **wrong).status_code == 422


def test_a_channel_that_nothing_speaks_is_said_so(container: Container, agent: FlaskClient, desk: Desk) -> None:
    agent.set_cookie("locale", "en")
    words = "Nothing goes out by this channel yet"
    for channel, said in (("web", False), ("email", True)):
        with container.transaction() as session:
            session.execute(update(Ticket).values(channel=channel))
        assert (words in html(agent.get(f"/tickets/{desk.number}"))) == said
    post(agent, desk, "approve", **form_of(agent, desk), text=DRAFT_TEXT)
    with container.transaction() as session:
        session.execute(update(Delivery).values(state=DeliveryState.SENT))
    assert words in html(agent.get(f"/tickets/{desk.number}"))


def test_a_cited_document_that_is_gone_is_marked(container: Container, agent: FlaskClient, desk: Desk) -> None:
    agent.set_cookie("locale", "en")
    doc_id = make_document(container, "退款")
    add_draft(container, desk.run_id, DRAFT_TEXT, doc_id=doc_id)
    fields = form_of(agent, desk)
    assert "replaced or deleted since" not in html(agent.get(f"/tickets/{desk.number}"))
    with container.transaction() as session:
        session.execute(update(KnowledgeDoc).values(state=DocState.ARCHIVED))
    assert "replaced or deleted since" in html(agent.get(f"/tickets/{desk.number}"))
    late = post(agent, desk, "approve", **fields, text=DRAFT_TEXT)
    assert late.status_code == 409
    assert "has been replaced or deleted" in late.get_data(as_text=True)


@pytest.mark.parametrize(
    ("run", "ticket", "said"),
    [
        ({"status": RunStatus.FAILED, "error_code": "set_aside"}, {"escalated_at": text("now()")}, "Escalation"),
        ({"status": RunStatus.CANCELLED}, {"status": "pending"}, "Stopped"),
        ({"status": RunStatus.WAITING_FOR_REVIEW, "planner": "manual"}, {}, "Written by hand"),
        ({"status": RunStatus.CANCELLED}, {"status": "spam"}, "Spam"),
    ],
)
def test_head_and_list_say_the_same(
    container: Container,
    agent: FlaskClient,
    desk: Desk,
    run: dict[str, object],
    ticket: dict[str, object],
    said: str,
) -> None:
    set_run(container, desk, **run)
    with container.transaction() as session:
        session.execute(update(Ticket).values(channel="web", **ticket))
    agent.set_cookie("locale", "en")
    page = html(agent.get(f"/tickets/{desk.number}"))
    head = page[page.index('id="ticket-head"') : page.index('id="ticket-body"')]
    row = page[page.index(f'id="ticket-row-{desk.ticket_id}"') :]
    for place in (head, row[: row.index("</a>")]):
        assert f"{said}</span>" in place


def test_an_escalation_is_told_while_the_ticket_is_open(container: Container, agent: FlaskClient, desk: Desk) -> None:
    agent.set_cookie("locale", "en")
    set_run(container, desk, status=RunStatus.FAILED, error_code="set_aside", moved_by=desk.staff_id)
    with container.transaction() as session:
        session.execute(update(Ticket).values(escalated_at=text("now()"), escalation_reason="Ask the makers"))
    page = html(agent.get(f"/tickets/{desk.number}"))
    side = page[page.index('id="ticket-side"') :]
    assert "Ask the makers" in side
    assert re.search(r"<dt>By</dt><dd>\w+</dd>", side)
    actions = page[page.index('id="actions"') : page.index('id="ticket-side"')]
    (first,) = re.findall(r'class="btn btn-primary">.*?</svg>([^<]+)</button>', actions)
    assert first == "Write it myself"


def test_every_region_says_how_new_it_is(agent: FlaskClient, desk: Desk) -> None:
    page = html(agent.get(f"/tickets/{desk.number}"))
    for region in Region:
        assert re.search(rf'id="{region}"[^>]* data-seq="\d+"', page)


def test_an_unknown_event_refreshes_everything() -> None:
    assert dirty(["something new"]) == tuple(Region)
    assert Region.SIDE not in dirty(["step_started"])
    assert dirty([]) == ()


def test_the_approval_key_is_new_for_every_editor(container: Container, desk: Desk) -> None:
    with container.transaction() as session:
        page = ticket_page(session, desk.number, staff_id=make_staff(container))
    first, second = editor_of(page), editor_of(page)
    assert first is not None
    assert second is not None
    assert first.key != second.key
    assert first.seen == desk.seen
    assert new_id().hex != first.key
