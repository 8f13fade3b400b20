"""Sign in and out."""

from flask import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.demo.loader import ACCOUNTS
from app.errors import AppError
from app.httpkit.auth import current_staff_or_none, end_session, local_path, start_session
from app.httpkit.container import container
from app.httpkit.htmx import answer
from app.httpkit.language import gettext as _
from app.httpkit.language import say
from app.httpkit.off_loop import off_loop
from app.staff.passwords import check_password
from app.staff.sign_in import FailureCount, authenticate

blueprint = Blueprint("auth", __name__)


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
    parts = container()
    try:
        person = authenticate(
            parts.transaction,
            username=username,
            password=password,
            failures=FailureCount(parts.redis, username, request.remote_addr or ""),
            check=off_loop(check_password),
        )
    except AppError as error:
        return _page(error=say(error), username=username, status=error.status)
    start_session(person, keep="keep" in request.form)
    return redirect(_next(), 303)


@blueprint.post("/sign-out")
def sign_out() -> Response:
    """End the session."""
    end_session()
    return redirect(url_for("auth.sign_in"), 303)


def _next() -> str:
    return local_path(request.values.get("next")) or url_for("inbox.index")


def _page(*, error: str = "", username: str = "", status: int = 200) -> Response:
    accounts = ACCOUNTS if container().settings.demo else ()
    target = local_path(request.values.get("next")) or ""
    page = render_template(
        "auth/sign_in.html", error=error, username=username, next_path=target, demo_accounts=accounts
    )
    return answer(page, status)
