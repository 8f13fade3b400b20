"""Commands of the staff room: people are made, shut out, get a new password, and choose their language."""

from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.errors import InvalidInput, NotFound
from app.ids import new_id
from app.staff import audit
from app.staff.models import LOCALES, USERNAME_MAX, Role, Staff
from app.staff.passwords import hash_password
from app.staff.sign_in import end_sessions


def create_staff(
    session: Session, *, username: str, display_name: str, password: str, role: Role, locale: str | None = None
) -> UUID:
    """Create a person who can sign in; returns their id. Raises InvalidInput when the name is taken or can't be one."""
    if not username or not password:
        raise InvalidInput("A name and a password are needed.")
    if len(username) > USERNAME_MAX or not username.isprintable() or username != username.strip():
        raise InvalidInput("An account name has at most %(most)s printable characters.", most=USERNAME_MAX)
    if session.scalar(select(Staff.id).where(Staff.username == username)) is not None:
        raise InvalidInput("The account name %(username)s is taken.", field="username", username=username)
    staff = Staff(
        id=new_id(),
        username=username,
        display_name=display_name,
        password_hash=hash_password(password),
        role=role,
        locale=locale,
    )
    session.add(staff)
    session.flush()
    return staff.id


def change_locale(session: Session, *, staff_id: UUID, locale: str) -> None:
    """Set the language of a person's pages. Raises InvalidInput for a language we do not have, NotFound."""
    if locale not in LOCALES:
        raise InvalidInput("There is no such language.", field="locale")
    found = session.scalar(update(Staff).where(Staff.id == staff_id).values(locale=locale).returning(Staff.id))
    if found is None:
        raise NotFound("There is no such account.")


def set_active(session: Session, *, username: str, active: bool) -> None:
    """Shut a person out, which ends their sessions, or let them in again. Raises NotFound."""
    staff = _named(session, username)
    staff.is_active = active
    if not active:
        end_sessions(session, staff.id)
    _audit(session, "staff_enabled" if active else "staff_disabled", staff)


def change_password(session: Session, *, username: str, password: str) -> None:
    """Give a person a new password and end their sessions. Raises InvalidInput when it is empty, NotFound."""
    if not password:
        raise InvalidInput("A name and a password are needed.")
    staff = _named(session, username)
    staff.password_hash = hash_password(password)
    end_sessions(session, staff.id)
    _audit(session, "password_changed", staff)


def sign_out_everywhere(session: Session, *, username: str) -> None:
    """End every session of a person. Raises NotFound."""
    staff = _named(session, username)
    end_sessions(session, staff.id)
    _audit(session, "sessions_ended", staff)


def _named(session: Session, username: str) -> Staff:
    staff = session.scalar(select(Staff).where(Staff.username == username).with_for_update())
    if staff is None:
        raise NotFound("There is no such account.")
    return staff


def _audit(session: Session, action: str, staff: Staff) -> None:
    audit.record(session, action, staff_id=None, account=str(staff.id))
