"""What people do with a draft, and what happens when two of them do it, or the connection is gone."""

import re

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect
from sqlalchemy import select, text, update

from app.delivery.models import Delivery
from app.review import service
from app.runs.models import Run, RunStatus
from app.staff.models import Role
from app.tickets.models import Ticket
from tests.browser.conftest import Person, SignIn
from tests.browser.stack import Stack
from tests.factories import make_staff
from tests.intake.writing import write
from tests.review.factories import DRAFT_TEXT, Desk, add_draft, make_desk, see

pytestmark = pytest.mark.browser

HOSTILE = '<script>window.owned = 1</script><img src=x onerror="window.owned=1"> ![x](https://evil.example/x.png)'


def editor_of(person: Person, desk: Desk) -> Page:
    page = person.open(desk.number)
    expect(page.locator("#reply-text")).to_have_value(DRAFT_TEXT)
    return page


def test_a_double_click_sends_once(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    page.dblclick("#approve")
    expect(page.locator("#sent")).to_be_visible()
    with offline.container.sessions() as session:
        assert len(session.scalars(select(Delivery).where(Delivery.ticket_id == desk.ticket_id)).all()) == 1


def test_typed_text_survives_reload_and_is_there_in_a_second_browser(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    agent, elsewhere = sign_in(offline), sign_in(offline)
    page = editor_of(agent, desk)
    page.locator("#reply-text").fill("刚打的字还没有保存")
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.locator("#reply-text")).to_have_value("刚打的字还没有保存")
    expect(page.locator(".save-state")).to_contain_text("已保存")
    other = elsewhere.open(desk.number)
    expect(other.locator("#reply-text")).to_have_value("刚打的字还没有保存")
    other.click('[data-composer="revert"]')
    expect(other.locator("#reply-text")).to_have_value(DRAFT_TEXT)


def test_hostile_text_is_inert(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container, draft=False)
    with offline.container.transaction() as session:
        session.execute(update(Ticket).where(Ticket.id == desk.ticket_id).values(subject=HOSTILE))
        session.execute(
            text("UPDATE ticket_messages SET body = :b WHERE ticket_id = :t"), {"b": HOSTILE, "t": desk.ticket_id}
        )
    add_draft(offline.container, desk.run_id, HOSTILE)
    agent = sign_in(offline)
    outside: list[str] = []
    agent.page.on(
        "request", lambda request: None if request.url.startswith(offline.url) else outside.append(request.url)
    )
    page = agent.open(desk.number)
    expect(page.locator("#reply-text")).to_have_value(HOSTILE)
    expect(page.locator(".msg-text").first).to_have_text(HOSTILE)
    with offline.container.transaction() as session:  # the stream brings the same text again
        service.escalate(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason=HOSTILE)
    expect(page.locator("#ticket-side")).to_contain_text("window.owned")
    assert page.evaluate("window.owned") is None
    assert outside == []


def test_two_people_approving_one_is_told_who_was_first(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    agent, lead = sign_in(offline), sign_in(offline, "lead", Role.SUPERVISOR)
    mine, theirs = editor_of(agent, desk), editor_of(lead, desk)
    mine.locator("#reply-text").fill(DRAFT_TEXT + "我加的一句。")
    theirs.click("#approve")
    expect(theirs.locator("#sent")).to_be_visible()
    expect(mine.locator("#held")).to_contain_text(re.compile(r"lead已先在\d\d:\d\d批准"))
    expect(mine.locator("#reply-text")).to_have_value(DRAFT_TEXT + "我加的一句。")
    assert mine.locator("#actions").get_attribute("inert") is not None, "what was decided can't be decided again"
    mine.locator("#reply-text").press("Control+Enter")
    expect(mine.locator("#held button")).to_be_focused()
    expect(mine.locator("#reply-text")).to_have_value(DRAFT_TEXT + "我加的一句。")
    mine.keyboard.press("Enter")
    expect(mine.locator("#sent")).to_contain_text(DRAFT_TEXT)
    with offline.container.sessions() as session:
        assert len(session.scalars(select(Delivery).where(Delivery.ticket_id == desk.ticket_id)).all()) == 1


def test_an_untouched_editor_follows_what_others_do(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    lead = make_staff(offline.container, "lead", Role.SUPERVISOR)
    with offline.container.transaction() as session:
        service.cancel_run(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=lead)
    expect(page.locator("#reply-text")).to_have_count(0)
    expect(page.locator(".step.is-stopped")).to_contain_text("lead")


def test_a_slow_answer_does_not_undo_what_came_after_it(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    answers: list[tuple[Route, APIResponse]] = []
    page.route("**/approve", lambda route: answers.append((route, route.fetch())))
    page.locator("#approve").click()
    expect(page.locator("#ticket-head .st").first).to_have_text(re.compile("发送中|已解决"))
    write(offline.container, desk.ticket_id, "还有一件事")
    messages = page.locator("#ticket-side .facts dd").last
    expect(page.locator("#timeline")).to_contain_text("还有一件事")
    said = messages.inner_text()
    ((route, answer),) = answers
    route.fulfill(response=answer)
    expect(page.locator("#actions [data-stop]")).to_be_visible()
    expect(page.locator("#timeline")).to_contain_text("还有一件事")
    assert messages.inner_text() == said


def test_a_refusal_goes_with_the_state_that_it_was_about(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    add_draft(offline.container, desk.run_id, "另一份草稿。")  # no event tells of it
    page.locator("#approve").click()
    notice = page.locator("#notice")
    expect(notice.locator("button")).to_be_visible()
    expect(notice.locator("[data-typed]")).to_be_hidden()
    with offline.container.transaction() as session:
        service.cancel_run(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id)
    expect(page.locator(".step.is-stopped")).to_be_visible()
    expect(notice.locator("button")).to_have_count(0)


def test_findings_block_sending_until_they_are_changed(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    page.locator("#reply-text").fill("😀您好，请联系 13812345678，我们保证百分之百退款。")
    approve = page.locator("#approve")
    expect(approve).to_have_class(re.compile("btn-held"))
    expect(approve.locator(".need")).to_be_visible()
    expect(page.locator("#checks-strip .decide").first).to_be_visible()
    marked = page.locator(".mirror .finding").all_inner_texts()
    assert "13812345678" in marked
    approve.click()
    assert page.evaluate("getSelection().toString()") == "13812345678"
    while page.locator('#checks-strip [data-composer="delete"]').count():
        before = page.locator("#checks-strip .decide").count()
        page.locator('#checks-strip [data-composer="delete"]').first.click()
        expect(page.locator("#checks-strip .decide")).not_to_have_count(before)
    expect(approve).to_have_class(re.compile("btn-primary"))
    approve.click()
    expect(page.locator("#sent")).to_be_visible()


def test_a_changed_sentence_loses_its_mark_and_a_kept_one_keeps_it(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    expect(page.locator(".editor .mark-ok")).to_have_count(1)
    page.locator("#reply-text").press("Control+End")
    page.keyboard.type("\n另外加一句。")
    expect(page.locator(".editor .mark-ok")).to_have_count(1)
    expect(page.locator(".editor .mark-mine")).to_have_count(1)
    page.locator("#reply-text").fill("完全改写。")
    expect(page.locator(".editor .mark-ok")).to_have_count(0)


def test_escalate_with_a_reason(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    page.locator("body").press("u")
    page.fill("#reason", "涉及用电安全")
    page.keyboard.press("Enter")
    expect(page.locator("#ticket-head .st")).to_have_text("待升级处理")
    expect(page.locator("#ticket-side")).to_contain_text("涉及用电安全")


def test_plain_letters_never_send_and_a_question_mark_shows_the_keys(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    for letter in "abcdfhilmnopqrstvwxyz":
        page.locator("body").press(letter)
    page.locator("body").press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    expect(page.locator("#reply-text")).to_be_visible()
    with offline.container.sessions() as session:
        assert session.scalars(select(Delivery).where(Delivery.ticket_id == desk.ticket_id)).all() == []
    page.locator("body").press("e")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#sent")).to_be_visible()


def test_a_failed_run_can_be_tried_again(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container, status=RunStatus.FAILED, draft=False)
    page = sign_in(offline).open(desk.number)
    expect(page.locator("#ticket-head .st")).to_have_text("起草失败")
    page.click("#actions footer .btn-primary")
    expect(page.locator("#ticket-head .st")).not_to_have_text("起草失败")
    with offline.container.sessions() as session:
        again = session.scalars(select(Run).where(Run.retry_from == desk.run_id)).one()
        assert again.planner == "rule"


def test_a_lost_connection_is_shown_and_caught_up(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    agent = sign_in(offline)
    page = editor_of(agent, desk)
    agent.remember()
    offline.kill_process("web")
    try:
        expect(page.locator("#live-lost")).to_be_visible()
        with offline.container.transaction() as session:
            service.approve(
                session,
                ticket_id=desk.ticket_id,
                staff_id=desk.staff_id,
                text=DRAFT_TEXT,
                seen=see(offline.container, desk.ticket_id),
                key="while the web was away",
            )
    finally:
        offline.start_process("web")
    expect(page.locator("#sent")).to_contain_text(DRAFT_TEXT)
    expect(page.locator("#live-lost")).to_be_hidden()
    assert agent.was_not_reloaded()


def test_without_redis_the_page_still_follows(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    agent = sign_in(offline)
    page = editor_of(agent, desk)
    with offline.valkey_away(), offline.container.transaction() as session:
        service.cancel_run(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id)
    expect(page.locator(".step.is-stopped")).to_be_visible()
