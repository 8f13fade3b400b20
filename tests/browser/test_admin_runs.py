"""The operations page in a browser: it follows by itself, and moves nothing that somebody is using."""

import pytest
from playwright.sync_api import Page, expect

from app.ids import new_id
from app.review import service
from app.runs.models import RunStatus
from app.staff.models import Role
from tests.browser.conftest import SignIn
from tests.browser.stack import Stack
from tests.factories import make_staff
from tests.review.factories import make_desk
from tests.web.admin_runs import failed, shape

pytestmark = pytest.mark.browser


def confirm(page: Page) -> None:
    page.locator("#confirm-yes").click()


def test_it_follows_and_keeps_what_is_open_and_in_use(offline: Stack, sign_in: SignIn) -> None:
    opened, used = make_desk(offline.container), make_desk(offline.container)
    page = sign_in(offline, f"root-{new_id()}", Role.ADMIN).page
    page.goto(f"{offline.url}/admin/runs?list=set_aside&held={opened.run_id}&held={used.run_id}")
    page.locator(f"#open-{opened.run_id}").press("Enter")
    expect(page.locator(f"#more-{opened.run_id}")).to_contain_text("等待人工审核草稿")
    page.locator(f"#open-{used.run_id}").focus()

    made = failed(offline.container, "set_aside")
    expect(page.locator(f"#run-{made.run_id}")).to_contain_text("已搁置")
    assert page.evaluate("document.activeElement.id") == f"open-{used.run_id}"
    expect(page.locator(f"#more-{opened.run_id}")).to_be_visible()

    page.locator(f"#stop-{opened.run_id}").click()
    confirm(page)
    row = page.locator(f"#run-{opened.run_id}")
    expect(row).to_have_attribute("data-status", RunStatus.CANCELLED)
    expect(page.locator(f"#more-{opened.run_id}")).to_contain_text("停止")
    page.locator(f"#open-{opened.run_id}").click()
    expect(page.locator(f"#more-{opened.run_id}")).to_have_count(0)


def test_who_was_faster_is_said_in_the_row_until_it_is_closed(offline: Stack, sign_in: SignIn) -> None:
    desk = make_desk(offline.container)
    other = make_staff(offline.container, f"ann-{new_id()}", Role.ADMIN)
    page = sign_in(offline, f"root-{new_id()}", Role.ADMIN).page
    page.goto(f"{offline.url}/admin/runs?held={desk.run_id}")
    page.locator(f"#stop-{desk.run_id}").click()
    with offline.container.transaction() as session:
        service.cancel_run(session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=other)
    confirm(page)
    notice = page.locator(f"#notice-{desk.run_id}")
    expect(notice).to_contain_text("停止了这份草稿")
    for _ in range(2):
        page.wait_for_event("response", lambda answer: "/admin/runs/board" in answer.url)
    expect(notice).to_contain_text("停止了这份草稿")
    notice.get_by_role("button").click()
    expect(notice).to_have_count(0)


def test_a_run_is_retried_only_as_the_page_showed_it(offline: Stack, sign_in: SignIn) -> None:
    made = failed(offline.container)
    page = sign_in(offline, f"root-{new_id()}", Role.ADMIN).page
    page.goto(f"{offline.url}/admin/runs?list=failed")
    page.locator(f"#retry-{made.run_id}").click()
    shape(offline.container, made.run_id, fence=1)
    confirm(page)
    expect(page.locator(f"#notice-{made.run_id}")).to_contain_text("起草失败")

    page.locator(f"#retry-{made.run_id}").click()
    confirm(page)
    expect(page.locator(f"#newer-{made.run_id}")).to_contain_text("已有另一次运行接替")


def test_a_lost_connection_is_said_once_and_heals(offline: Stack, sign_in: SignIn) -> None:
    page = sign_in(offline, f"root-{new_id()}", Role.ADMIN).page
    page.goto(f"{offline.url}/admin/runs")
    page.context.set_offline(True)
    expect(page.locator("#live-lost")).to_be_visible()
    expect(page.locator("[data-toast]")).to_have_count(0)
    page.context.set_offline(False)
    expect(page.locator("#live-lost")).to_be_hidden()
