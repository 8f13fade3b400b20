"""Lists in a browser: the inbox follows by itself and never moves under a hand, documents show how far they are."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.ids import new_id
from app.review import service
from app.runs.models import RunStatus
from app.staff.models import Role
from tests.browser.conftest import SignIn
from tests.browser.stack import Stack
from tests.factories import make_ticket
from tests.review.factories import make_desk

pytestmark = pytest.mark.browser

QUESTION = "银行卡支付的退款，审核通过后多久到账？"


def row_of(page: Page, ticket_id: object):
    return page.locator(f"#ticket-row-{ticket_id}")


def test_the_inbox_follows_by_itself(offline: Stack, sign_in: SignIn) -> None:
    person = sign_in(offline)
    page = person.connected()
    person.remember()
    waiting = page.locator("#rail-views .rail-count").first
    before = int(waiting.inner_text())
    made = make_ticket(offline.container, subject="自己出现的工单", content=QUESTION)
    expect(row_of(page, made.ticket_id)).to_contain_text("草稿就绪")
    expect(waiting).to_have_text(str(before + 1))
    assert person.was_not_reloaded()


def test_a_list_in_use_is_offered_and_stays_where_it_is(offline: Stack, sign_in: SignIn) -> None:
    first = make_ticket(offline.container, subject="第一张", content=QUESTION)
    person = sign_in(offline)
    page = person.connected()
    expect(row_of(page, first.ticket_id)).to_contain_text("草稿就绪")
    row_of(page, first.ticket_id).hover()
    before = row_of(page, first.ticket_id).bounding_box()
    second = make_ticket(offline.container, subject="第二张", content=QUESTION)
    offered = page.locator("[data-list-new]")
    expect(offered).to_have_text("1条新工单")
    assert row_of(page, first.ticket_id).bounding_box() == before
    assert row_of(page, second.ticket_id).count() == 0
    offered.click()
    expect(row_of(page, second.ticket_id)).to_be_visible()
    expect(offered).to_be_hidden()


def test_a_row_of_a_list_in_use_says_what_is_now_though_its_place_waits(offline: Stack, sign_in: SignIn) -> None:
    made = [make_desk(offline.container) for _ in range(3)]
    page = sign_in(offline).connected()
    row = row_of(page, made[0].ticket_id)
    row.hover()
    order = page.locator("[data-row]").evaluate_all("rows => rows.map((row) => row.id)")
    with offline.container.transaction() as session:
        service.cancel_run(session, ticket_id=made[0].ticket_id, run_id=made[0].run_id, staff_id=made[0].staff_id)
    expect(row).to_contain_text("已停止")
    assert page.locator("[data-row]").evaluate_all("rows => rows.map((row) => row.id)") == order


def test_the_open_ticket_stands_on_top_of_a_list_that_does_not_hold_it(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    page = sign_in(offline).page
    page.goto(f"{offline.url}/tickets/{desk.number}?view=failed")
    page.wait_for_selector("#live-lost", state="hidden")
    pinned = page.locator("[data-pinned] [data-row]")
    expect(pinned).to_have_attribute("aria-current", "true")
    other = make_desk(offline.container, status=RunStatus.FAILED, draft=False)
    with offline.container.transaction() as session:  # any event makes the stream look at the list
        service.cancel_run(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id)
    expect(row_of(page, other.ticket_id)).to_be_visible()
    expect(pinned).to_have_attribute("aria-current", "true")


def test_keys_walk_through_the_list_and_open_a_ticket(offline: Stack, sign_in: SignIn) -> None:
    made = [make_ticket(offline.container, subject=f"工单{at}", content=QUESTION) for at in range(3)]
    person = sign_in(offline)
    page = person.connected()
    for ticket in made:
        expect(row_of(page, ticket.ticket_id)).to_contain_text("草稿就绪")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("[data-row]").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("/")
    expect(page.locator("[data-search]")).to_be_focused()
    page.keyboard.type("j")
    expect(page.locator("[data-search]")).to_have_value("j")
    page.locator("[data-row]").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#ticket")).to_be_visible()
    expect(page.locator("[data-row][aria-current=true]")).to_have_count(1)


def test_the_theme_is_chosen_without_a_request_and_kept(offline: Stack, sign_in: SignIn) -> None:
    person = sign_in(offline)
    page = person.connected()
    person.remember()
    page.click(".rail-foot summary")
    page.click("[data-theme-choice=dark]")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert person.was_not_reloaded()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_document_is_uploaded_found_and_deleted(offline: Stack, sign_in: SignIn, tmp_path: Path) -> None:
    page = sign_in(offline, "lead", Role.SUPERVISOR).page
    page.goto(f"{offline.url}/knowledge")
    file = tmp_path / "gifts.md"
    file.write_text(f"# 礼品包装\n\n## 怎么选\n\n结算时勾选礼品包装，每单收费八元。{new_id().hex}\n", encoding="utf-8")
    page.set_input_files("#files", file)
    expect(page.locator("#upload-results")).to_contain_text("gifts.md")
    row = page.locator("#doc-list tr", has_text="gifts.md")
    expect(row).to_contain_text("可用")
    page.fill("[name=question]", "礼品包装多少钱")
    page.click(".ask .btn")
    expect(page.locator("#search-result .hitcard").first).to_contain_text("礼品包装")
    expect(page.locator("#search-result")).to_contain_text("向量第1")
    row.locator("button").click()
    page.click("#confirm button[value=no]")
    expect(row).to_be_visible()
    row.locator("button").click()
    page.click("#confirm-yes")
    expect(row).to_have_count(0)
    expect(page.locator("#toasts")).to_contain_text("已删除gifts.md")
