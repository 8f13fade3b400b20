"""Browser tests: a real Chromium against real processes. People are contexts of their own."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from sqlalchemy import Engine

from app.settings import Settings
from app.staff.models import Role
from tests.browser.stack import Stack
from tests.factories import PASSWORD, make_staff
from tests.support.model_server import ModelServer, model_server, stub_llm  # noqa: F401 - fixtures

PATIENCE_MS = 30_000
"""How long a page may take; machines that run tests are busy."""

expect.set_options(timeout=PATIENCE_MS)
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    """One headless Chromium; it ends with its module, for Playwright keeps an event loop running in this thread."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def offline(settings: Settings, admin_engine: Engine, var_dir: Path) -> Iterator[Stack]:
    """The product without a model."""
    stack = Stack("offline", settings, admin_engine, var_dir / "off")
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="session")
def streaming(
    settings: Settings,
    admin_engine: Engine,
    var_dir: Path,
    model_server: ModelServer,  # noqa: F811
) -> Iterator[Stack]:
    """The product with a model that writes slowly enough to be watched."""
    stack = Stack(
        "streaming",
        settings,
        admin_engine,
        var_dir / "llm",
        LLM_BASE_URL=model_server.base_url,
        LLM_API_KEY="stub",
        LLM_MODEL="stub;chunks=40;chunk_delay=.25;text=400",
    )
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a browser."""

    page: Page
    base: str

    def open(self, number: int) -> Page:
        """Open a ticket and wait until its stream is connected."""
        self.page.goto(f"{self.base}/tickets/{number}")
        return self.connected()

    def connected(self) -> Page:
        """Wait until the page's stream is open."""
        self.page.wait_for_function("() => document.getElementById('live')?._htmx?.sse?.reader")
        return self.page

    def new_ticket(self, subject: str, content: str) -> int:
        """Take a ticket in by the form; returns its number, with its page open."""
        self.page.goto(f"{self.base}/tickets/new")
        self.page.fill("[name=customer_id]", "C-2001")
        self.page.fill("[name=customer_name]", "陈雨桐")
        self.page.fill("[name=subject]", subject)
        self.page.fill("[name=content]", content)
        self.page.click("main form .btn-primary")
        self.page.wait_for_url(re.compile(r"/tickets/\d+$"))
        return int(self.page.url.rsplit("/", 1)[1])

    def remember(self) -> None:
        """Leave a mark in the page that a reload would wipe."""
        self.page.evaluate("window.notReloaded = true")

    def was_not_reloaded(self) -> bool:
        """Say whether the mark is still there."""
        return bool(self.page.evaluate("window.notReloaded === true"))


SignIn = Callable[..., Person]


@pytest.fixture
def sign_in(browser: Browser) -> Iterator[SignIn]:
    """`sign_in(stack, "ann")` makes a person, signs them in through the form and returns them."""
    contexts = []
    problems: list[str] = []

    def enter(stack: Stack, username: str = "agent", role: Role = Role.AGENT) -> Person:
        make_staff(stack.container, username, role)
        context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="zh-CN")
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if "Content Security Policy" in said.text else None)
        page.goto(f"{stack.url}/sign-in")
        page.fill("[name=username]", username)
        page.fill("[name=password]", PASSWORD)
        page.click("form .btn-primary")
        page.wait_for_url(f"{stack.url}/")
        return Person(page, stack.url)

    yield enter
    for context in contexts:
        context.close()
    assert problems == [], "a script on the page failed"
