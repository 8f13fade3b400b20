"""The customer goes on writing while people work on the ticket, and people end it: in a browser, with the keys too."""

import re

import pytest
from playwright.sync_api import Page, expect

from app.runs.models import RunStatus
from tests.browser.conftest import Person, SignIn
from tests.browser.stack import Stack
from tests.factories import make_ticket
from tests.intake.writing import runs_of, ticket_of, write
from tests.review.factories import DRAFT_TEXT, Desk, make_desk
from tests.support.waiting import until

pytestmark = pytest.mark.browser


def editor_of(person: Person, desk: Desk) -> Page:
    page = person.open(desk.number)
    expect(page.locator("#reply-text")).to_have_value(DRAFT_TEXT)
    return page


def test_a_message_is_told_to_who_is_writing_and_nothing_typed_is_lost(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    page.locator("#reply-text").fill("我改到一半的回复")
    write(offline.container, desk.ticket_id, "等一下，我又找到订单号了")
    held = page.locator("#held")
    expect(held).to_be_visible()
    expect(held).to_contain_text(re.compile(r"客户在\d\d:\d\d又来信了。"))
    expect(page.locator("#timeline")).to_contain_text("等一下，我又找到订单号了")
    expect(page.locator("#reply-text")).to_have_value("我改到一半的回复")
    expect(page.locator(".save-state")).to_contain_text("已保存")
    held.locator("button").click()
    expect(page.locator("#timeline")).to_contain_text("看客户是否继续写")
    expect(held).to_be_hidden()
    page.locator("#unsent summary").click()
    expect(page.locator("#unsent")).to_contain_text("我改到一半的回复")


def test_who_writes_without_ai_looks_at_the_message_and_goes_on(offline: Stack, sign_in: SignIn) -> None:
    made = make_ticket(offline.container, run_status=RunStatus.CANCELLED)
    page = sign_in(offline).open(made.number)
    page.locator("#actions form[hx-post$='/manual'] button").click()
    page.locator("#reply-text").fill("我自己写的回复")
    expect(page.locator(".save-state")).to_contain_text("已保存")
    for body in ("还有一件事", "再补一句"):
        write(offline.container, made.ticket_id, body)
        held = page.locator("#held")
        expect(held).to_be_visible()
        held.locator("button").click()
        expect(held).to_be_hidden()
        expect(page.locator("#timeline")).to_contain_text(body)
        expect(page.locator("#reply-text")).to_have_value("我自己写的回复")
        expect(page.locator("#actions")).not_to_have_attribute("inert", re.compile(""))
    page.locator("#approve").click()
    expect(page.locator("#sent")).to_contain_text("我自己写的回复")


def test_an_untouched_draft_makes_room_for_the_new_run(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    write(offline.container, desk.ticket_id, "还有一件事")
    expect(page.locator("#reply-text")).to_have_count(0)
    expect(page.locator("#timeline")).to_contain_text("看客户是否继续写")


def test_the_new_run_starts_by_itself_once_the_customer_is_quiet(offline: Stack, sign_in: SignIn) -> None:
    made = make_ticket(offline.container, run_status=RunStatus.CANCELLED)
    page = sign_in(offline).open(made.number)
    for body in ("还有一件事", "再补一句"):
        write(offline.container, made.ticket_id, body, window=offline.container.message_window)
    until(lambda: runs_of(offline.container, made.ticket_id)[-1].status not in ("created", "running"), limit_s=60)
    first, second = runs_of(offline.container, made.ticket_id)
    assert (first.status, second.status.split("_")[0]) == ("cancelled", "waiting")
    expect(page.locator("#timeline")).to_contain_text("再补一句")
    expect(page.locator("#timeline")).not_to_contain_text("看客户是否继续写")


def test_what_the_customer_said_is_written_down_with_the_keys(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = editor_of(sign_in(offline), desk)
    page.locator("#reply-text").fill("我改到一半的回复")
    page.locator("#record-opener").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    page.keyboard.type("电话里说：")
    write(offline.container, desk.ticket_id, "客户自己也写了")
    expect(page.locator("#timeline")).to_contain_text("客户自己也写了")
    expect(page.locator("#content")).to_have_value("电话里说：")
    page.locator("#content").focus()
    page.keyboard.type("急用")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#timeline")).to_contain_text("电话里说：急用")
    expect(page.locator("#record-opener")).to_be_focused()
    expect(page.locator("#reply-text")).to_have_value("我改到一半的回复")


def test_an_empty_note_is_refused_in_words(offline: Stack, sign_in: SignIn) -> None:
    made = make_ticket(offline.container, run_status=RunStatus.CANCELLED)
    page = sign_in(offline).open(made.number)
    page.locator("#record-opener").click()
    page.locator("#content").fill("   ")
    page.locator(".record-form button").click()
    expect(page.locator("#content-error")).to_be_visible()
    expect(page.locator("#content")).to_have_attribute("aria-invalid", "true")


def test_a_ticket_is_closed_and_opened_again_with_the_keys(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    agent, other = sign_in(offline), sign_in(offline, "colleague")
    page, elsewhere = editor_of(agent, desk), editor_of(other, desk)
    elsewhere.locator("#reply-text").fill("同事正在写")
    page.locator("#ticket-menu-opener").focus()
    page.keyboard.press("Enter")
    page.locator('#ticket-menu button[value="closed"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator("#actions")).to_contain_text("关闭了这张工单")
    expect(page.locator("#ticket-menu")).not_to_have_attribute("open", "")
    expect(elsewhere.locator("#held")).to_contain_text("关闭了这张工单")
    expect(elsewhere.locator("#reply-text")).to_have_value("同事正在写")
    assert ticket_of(offline.container, desk.ticket_id).status == "closed"
    page.locator("#ticket-menu-opener").click()
    page.locator('#ticket-menu button[value="pending"]').click()
    expect(page.locator('[data-line="line-regenerate"]')).to_be_visible()
