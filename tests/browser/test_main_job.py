"""The main job in a browser, offline: a ticket becomes a reviewed reply, and everybody sees it happen."""

import re

import pytest
from playwright.sync_api import Page, Request, expect
from sqlalchemy import select

from app.delivery.models import Delivery
from app.runs.models import Artifact, ArtifactType, Run
from app.staff.models import Role
from app.tickets.models import Ticket, TicketStatus
from tests.browser.conftest import SignIn
from tests.browser.stack import Stack

pytestmark = pytest.mark.browser

SUBJECT = "退款多久到账"
CONTENT = "你好，我用银行卡付的款，退款审核通过了，请问退款多久到账？"


def requests_of(page: Page) -> list[str]:
    """Return a list that grows with the address of every request of the page but its stream."""
    seen: list[str] = []

    def note(request: Request) -> None:
        if "/live?" not in request.url:
            seen.append(f"{request.method} {request.url}")

    page.on("request", note)
    return seen


def test_a_ticket_becomes_a_reviewed_reply_and_a_second_browser_sees_it(offline: Stack, sign_in: SignIn) -> None:
    agent, lead = sign_in(offline), sign_in(offline, "lead", Role.SUPERVISOR)
    lead.connected()
    lead.remember()

    number = agent.new_ticket(SUBJECT, CONTENT)
    page = agent.connected()
    asked = requests_of(page)
    row = lead.page.locator(f".row:has-text('#{number}')")
    expect(row).to_be_visible()

    expect(page.locator("#reply-text")).to_be_visible()
    page.locator(".run-fold > summary").last.click()
    for name in ("分类", "检索", "起草"):
        expect(page.locator(".step b", has_text=name).first).to_be_visible()
    assert asked == [], "a page asks for nothing but its stream while a run is at work"
    expect(page.locator("#reply-text")).to_have_value(re.compile("3至5个工作日"))
    expect(page.locator(".editor-cites [data-cite]").first).to_be_visible()
    expect(row).to_contain_text("草稿就绪")
    lead.open(number)
    lead.remember()

    page.locator("#reply-text").press("Control+End")
    page.keyboard.type("\n祝您生活愉快。")
    expect(page.locator("#approve")).to_contain_text("保存改动并发送")
    page.click("#approve")
    for person in (agent, lead):
        expect(person.page.locator("#sent")).to_contain_text("祝您生活愉快。")
        expect(person.page.locator("#ticket-head .st")).to_have_text("已解决")
    page.click("#sent [data-look]")
    expect(page.locator("#sent .sent-diff ins")).to_contain_text("祝您生活愉快。")
    assert lead.was_not_reloaded()
    check_what_was_kept(offline, number)


def check_what_was_kept(stack: Stack, number: int) -> None:
    with stack.container.sessions() as session:
        ticket = session.scalars(select(Ticket).where(Ticket.number == number)).one()
        assert ticket.status == TicketStatus.RESOLVED
        made = select(Artifact).join(Run).where(Run.ticket_id == ticket.id, Artifact.type == ArtifactType.SENT_REPLY)
        sent = session.scalars(made).one()
        assert sent.content["edited"] is True
        assert sent.content["text"].endswith("祝您生活愉快。")
        assert sent.staff_id is not None
        assert session.scalars(select(Delivery).where(Delivery.ticket_id == ticket.id)).one().state == "sent"


def test_a_source_shows_its_passage(offline: Stack, sign_in: SignIn) -> None:
    agent = sign_in(offline)
    agent.new_ticket(SUBJECT, CONTENT)
    page = agent.connected()
    expect(page.locator("#reply-text")).to_be_visible()
    page.locator(".source").first.focus()
    pop = page.locator(".pop.is-open")
    expect(pop).to_contain_text("退款到账时间")
    expect(pop.locator("mark").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(pop).to_have_count(0)
    page.locator(".editor-cites [data-cite]").first.hover()
    expect(pop).to_be_visible()


def test_regenerate_with_a_hint(offline: Stack, sign_in: SignIn) -> None:
    agent = sign_in(offline)
    agent.new_ticket(SUBJECT, CONTENT)
    page = agent.connected()
    expect(page.locator("#reply-text")).to_be_visible()
    page.click('[data-line="line-regenerate"]')
    page.fill("#hint", "语气再软一点")
    page.keyboard.press("Enter")
    expect(page.locator(".sheet-to")).to_contain_text("语气再软一点")
    expect(page.locator("#reply-text")).to_be_visible()
    expect(page.locator("#earlier-runs > summary")).to_contain_text("较早1次起草")
    expect(page.locator("#earlier-runs .run-fold")).to_have_count(1)
    expect(page.locator("#timeline .verdict")).to_be_visible()


def test_an_unanswerable_ticket_goes_to_a_person_who_writes_the_reply(offline: Stack, sign_in: SignIn) -> None:
    agent = sign_in(offline)
    agent.new_ticket("你们公司食堂好吃吗", "我想知道你们公司食堂中午有没有红烧肉，麻烦告诉我菜单。")
    page = agent.connected()
    expect(page.locator(".handover")).to_be_visible()
    page.click("#actions form:has-text('我来写') button")
    editor = page.locator("#reply-text")
    expect(editor).to_be_visible()
    expect(editor).to_have_value("")
    editor.fill("您好，食堂菜单不对外公开，感谢关注。")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#sent")).to_contain_text("食堂菜单不对外公开")
    expect(page.locator("#ticket-head .st").first).to_have_text("已解决")
