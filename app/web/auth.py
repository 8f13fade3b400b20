"""Sign in and out."""

from dataclasses import dataclass

from flask import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import AppError
from app.httpkit.auth import as_user, current_staff_or_none, end_session, local_path, start_session
from app.httpkit.container import container
from app.httpkit.htmx import answer
from app.httpkit.language import gettext as _
from app.httpkit.language import say
from app.msgids import msgid
from app.staff.service import FailureCount, authenticate

blueprint = Blueprint("auth", __name__)


@dataclass(frozen=True, slots=True)
class DemoAccount:
    """An account that the sign-in page offers in demo mode; `role` is a msgid."""

    username: str
    password: str
    role: str


DEMO_ACCOUNTS = (
    DemoAccount("agent", "agent-demo", msgid("Agent")),
    DemoAccount("lead", "lead-demo", msgid("Supervisor")),
    DemoAccount("admin", "admin-demo", msgid("Administrator")),
)


@blueprint.get("/sign-in")
def sign_in() -> Response:
    """Show the sign-in page, or go on when somebody is signed in."""
    if current_staff_or_none():
        return redirect(_next())
    return _page()


@blueprint.post("/sign-in")
def sign_in_submit() -> Response:
    """Check name and password and start a session."""
    username = request.form.get("username", "").strip()
    password = request.form.get("password", "")
    if not username or not password:
        return _page(error=_("Enter your account and your password."), username=username, status=422)
    try:
        with container().transaction() as session:
            failures = FailureCount(container().redis, username, request.remote_addr or "")
            person = authenticate(session, username=username, password=password, failures=failures)
    except AppError as error:
        return _page(error=say(error), username=username, status=error.status)
    start_session(as_user(person), keep="keep" in request.form)
    return redirect(_next(), 303)


@blueprint.post("/sign-out")
def sign_out() -> Response:
    """End the session."""
    end_session()
    return redirect(url_for("auth.sign_in"), 303)


def _next() -> str:
    return local_path(request.values.get("next")) or url_for("inbox.index")


def _page(*, error: str = "", username: str = "", status: int = 200) -> Response:
    accounts = DEMO_ACCOUNTS if container().settings.demo else ()
    target = local_path(request.values.get("next")) or ""
    page = render_template(
        "auth/sign_in.html", error=error, username=username, next_path=target, demo_accounts=accounts
    )
    return answer(page, status)
