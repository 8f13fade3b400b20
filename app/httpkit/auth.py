"""Who is signed in, and what that lets them do: Flask-Login over the staff room."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar, cast
from urllib.parse import urlsplit
from uuid import UUID

from flask import Flask, Response, g, redirect, request, session, url_for
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user
from werkzeug.wrappers import Response as BaseResponse

from app.errors import AppError, Forbidden
from app.httpkit.container import container
from app.httpkit.htmx import is_htmx
from app.ids import parse_id
from app.staff import sign_in
from app.staff.models import Role
from app.staff.queries import Person

P = ParamSpec("P")
R = TypeVar("R")


class SignedOut(AppError):
    """The request needs a person who is signed in, and the session has none (any more)."""

    status = 401
    code = "signed_out"


@dataclass(frozen=True)
class StaffUser(UserMixin):  # type: ignore[misc]
    """The person who is signed in, as views see them."""

    id: UUID
    username: str
    display_name: str
    role: Role
    locale: str | None
    session_id: UUID

    def get_id(self) -> str:
        """Return what the cookie keeps: the id of the session, never that of the person."""
        return str(self.session_id)

    def may(self, role: Role) -> bool:
        """Return whether this person's role includes `role`."""
        return self.role.includes(role)


def init_auth(app: Flask) -> None:
    """Set up Flask-Login: the cookie holds the id of a session that we keep, nothing else."""
    # Its context processor would look the person up for every template, the page of a failed database too.
    manager = LoginManager(app, add_context_processor=False)
    manager.session_protection = None
    manager.user_loader(load_staff)
    manager.unauthorized_handler(refuse_signed_out)
    app.jinja_env.globals["current_staff"] = current_staff_or_none


def load_staff(kept: str) -> StaffUser | None:
    """Return the person of a session, or None when they are gone, shut out, or their sessions were ended."""
    session_id = parse_id(kept)
    if session_id is None:
        return None
    with container().sessions() as db:
        person = sign_in.session_holder(db, session_id)
    return _as_user(person, session_id) if person else None


def start_session(person: Person, *, keep: bool) -> None:
    """Start a fresh session for `person`; nothing of the one before survives. `keep` outlives the browser's end."""
    session.clear()
    with container().transaction() as db:
        session_id = sign_in.start_session(db, person.id)
    login_user(_as_user(person, session_id))
    session.permanent = keep


def end_session() -> None:
    """End the session: a copy of its cookie opens nothing any more."""
    staff = current_staff_or_none()
    if staff:
        with container().transaction() as db:
            sign_in.end_session(db, staff.session_id)
    logout_user()
    session.clear()


def _as_user(person: Person, session_id: UUID) -> StaffUser:
    return StaffUser(person.id, person.username, person.display_name, person.role, person.locale, session_id)


def current_staff_or_none() -> StaffUser | None:
    """Return the person who is signed in, if one is."""
    if g.get("without_staff"):
        return None
    return cast(StaffUser, current_user) if current_user and current_user.is_authenticated else None


def do_without_staff() -> None:
    """Ask for nobody during the rest of this request: an error page must not need the database that just failed."""
    g.without_staff = True


def current_staff() -> StaffUser:
    """Return the person who is signed in. Raises SignedOut."""
    staff = current_staff_or_none()
    if staff is None:
        raise SignedOut("Your session has ended. Sign in again.")
    return staff


def staff_required(view: Callable[P, R]) -> Callable[P, R]:
    """Let only people who are signed in reach `view`."""
    return role_required(Role.AGENT)(view)


def role_required(role: Role) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let only people whose role includes `role` reach the view."""

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            require(role)
            return view(*args, **kwargs)

        return guarded

    return decorate


def require(role: Role) -> None:
    """Raise SignedOut without a person, Forbidden when their role does not include `role`."""
    if not current_staff().may(role):
        raise Forbidden("Your account may not open this. Ask a supervisor or an administrator.")


def refuse_signed_out() -> BaseResponse | Response:
    """Send a browser to the sign-in page and back; htmx, streams and the API get their 401 instead."""
    accepts = request.accept_mimetypes
    wants_page = request.method in ("GET", "HEAD") and (not accepts or accepts.accept_html)
    if not wants_page or is_htmx() or "text/event-stream" in accepts.values():
        raise SignedOut("Your session has ended. Sign in again.")
    return redirect(url_for("auth.sign_in", next=request.full_path.rstrip("?")))


def local_path(target: str | None) -> str | None:
    """Return `target` if it is a path of this site, else None: no redirect leads anywhere else."""
    if not target or not target.startswith("/") or target.startswith(("//", "/\\")) or "\\" in target:
        return None
    parts = urlsplit(target)
    return target if not parts.scheme and not parts.netloc and target.isprintable() else None
