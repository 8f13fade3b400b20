"""The draft grows as the model writes it, and stops when a person says so."""

import re

import pytest
from playwright.sync_api import Page, expect

from app.staff.models import Role
from tests.browser.conftest import SignIn
from tests.browser.stack import Stack
from tests.browser.test_main_job import CONTENT, SUBJECT, requests_of
from tests.support.model_server import ModelServer
from tests.support.waiting import until

pytestmark = pytest.mark.browser

WATCH = """() => {
  window.lengths = [];
  new MutationObserver(() => {
    const draft = document.querySelector("[data-draft-live]");
    const length = draft ? draft.innerText.trim().length : 0;
    if (length && length !== window.lengths.at(-1)) window.lengths.push(length);
  }).observe(document.getElementById("ticket-body"), { childList: true, subtree: true, characterData: true });
}"""


def lengths_of(page: Page) -> list[int]:
    seen: list[int] = page.evaluate("window.lengths")
    return seen


def test_the_draft_grows_before_everybodys_eyes(streaming: Stack, sign_in: SignIn) -> None:
    agent, lead = sign_in(streaming), sign_in(streaming, "lead", Role.SUPERVISOR)
    number = agent.new_ticket(SUBJECT, CONTENT)
    page = agent.connected()
    page.evaluate(WATCH)
    asked = requests_of(page)
    second = lead.open(number)
    second.evaluate(WATCH)
    expect(page.locator("#reply-text")).to_be_visible()
    expect(second.locator("#reply-text")).to_be_visible()
    for lengths in (lengths_of(page), lengths_of(second)):
        assert len(lengths) >= 3
        assert lengths == sorted(lengths)
    assert asked == []
    page.click("#approve")
    for each in (page, second):
        expect(each.locator("#ticket-head .st")).to_have_text("已解决")


def test_stopping_cuts_the_model_off(streaming: Stack, sign_in: SignIn, stub_llm: ModelServer) -> None:
    agent = sign_in(streaming)
    agent.new_ticket(SUBJECT, CONTENT)
    page = agent.connected()
    expect(page.locator("[data-draft-live] p").first).to_have_text(re.compile(r"\S"))
    page.locator("body").press("Escape")
    expect(page.locator(".step.is-stopped").first).to_be_visible()
    expect(page.locator("[data-draft-live]")).to_have_count(0)
    until(lambda: stub_llm.stats()["aborts"])
    page.click("#actions form:has-text('我来写') button")
    expect(page.locator("#reply-text")).to_be_visible()
