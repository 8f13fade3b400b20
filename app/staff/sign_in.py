"""Signing in: a name and a password become a session, which ends by signing out, by a command, or by its age."""

import hashlib
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from uuid import UUID

from redis import Redis, RedisError
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.errors import InvalidInput
from app.ids import new_id
from app.staff.models import USERNAME_MAX, Staff, StaffSession
from app.staff.passwords import PasswordCheck, check_password
from app.staff.queries import Person, as_person

log = logging.getLogger(__name__)

FAILURES_ALLOWED = 5
FAILURES_KEPT_S = 15 * 60
SESSION_LIFE = timedelta(days=14)
"""How long a session lasts at most, whatever the browser keeps."""

Transaction = Callable[[], AbstractContextManager[Session]]
Check = Callable[[str | None, str], PasswordCheck]


class SignInRefused(InvalidInput):
    """Name and password do not belong together; which of both is wrong is not said."""

    code = "sign_in_refused"


class TooManyFailures(InvalidInput):
    """This name failed too often from this address; it has to wait."""

    status = 429
    code = "too_many_failures"


class FailureCount:
    """Attempts of a name from an address since the last success, kept in Redis for a quarter of an hour.

    Without Redis nothing is counted: people can still sign in, and argon2 alone slows guessing down.
    """

    def __init__(self, redis: "Redis", username: str, origin: str) -> None:
        self._redis = redis
        self._counted = False
        # A digest: the key has one length whatever is sent, and names that people mistype stay out of Redis.
        self._key = "sign-in:" + hashlib.sha256(f"{username.lower()}\n{origin}".encode()).hexdigest()

    def admit(self) -> None:
        """Count an attempt before its outcome is known, so that attempts at the same time can't pass together.

        Raises TooManyFailures beyond the fifth in a quarter of an hour.
        """
        try:
            with self._redis.pipeline() as pipe:
                pipe.incr(self._key)
                pipe.expire(self._key, FAILURES_KEPT_S, nx=True)
                pipe.ttl(self._key)
                count, _, left_s = pipe.execute()
        except RedisError:
            log.warning("an attempt to sign in was not counted: Redis does not answer")
            return
        self._counted = True
        if count > FAILURES_ALLOWED:
            minutes = -(-left_s // 60)
            raise TooManyFailures("Too many failed attempts. Try again in %(minutes)s minutes.", minutes=minutes)

    def clear(self) -> None:
        """Forget the attempts after a success, if this one was counted: a Redis that hangs is waited for once."""
        if not self._counted:
            return
        try:
            self._redis.delete(self._key)
        except RedisError:
            log.warning("failed sign-ins were not cleared: Redis does not answer")


def authenticate(
    transaction: Transaction, *, username: str, password: str, failures: FailureCount, check: Check = check_password
) -> Person:
    """Return the person whose name and password these are. The check itself runs outside of any transaction.

    Raises SignInRefused (also for people who are shut out), TooManyFailures.
    """
    if len(username) > USERNAME_MAX or not username.isprintable():
        raise SignInRefused("Account or password is wrong.")
    failures.admit()
    with transaction() as session:
        kept = session.scalar(select(Staff.password_hash).where(Staff.username == username, Staff.is_active))
    checked = check(kept, password)
    with transaction() as session:
        # Changed or shut out meanwhile: what was checked is no longer so.
        unchanged = Staff.username == username, Staff.is_active, Staff.password_hash == kept
        staff = session.scalar(select(Staff).where(*unchanged)) if checked.right else None
        if staff is None:
            raise SignInRefused("Account or password is wrong.")
        if checked.better_hash:
            staff.password_hash = checked.better_hash
        person = as_person(staff)
    failures.clear()
    return person


def start_session(session: Session, staff_id: UUID) -> UUID:
    """Start a session of a person and return its id; those of theirs that are too old are swept."""
    too_old = StaffSession.created_at < func.now() - SESSION_LIFE
    session.execute(delete(StaffSession).where(StaffSession.staff_id == staff_id, too_old))
    made = StaffSession(id=new_id(), staff_id=staff_id)
    session.add(made)
    session.flush()
    return made.id


def session_holder(session: Session, session_id: UUID) -> Person | None:
    """Return whose session this is, or None when it has ended or its person is shut out."""
    staff = session.scalar(
        select(Staff)
        .join(StaffSession, StaffSession.staff_id == Staff.id)
        .where(StaffSession.id == session_id, StaffSession.created_at >= func.now() - SESSION_LIFE, Staff.is_active)
    )
    return as_person(staff) if staff else None


def end_session(session: Session, session_id: UUID) -> None:
    """End one session; others of the same person go on."""
    session.execute(delete(StaffSession).where(StaffSession.id == session_id))


def end_sessions(session: Session, staff_id: UUID) -> None:
    """End every session of a person, wherever they are signed in."""
    session.execute(delete(StaffSession).where(StaffSession.staff_id == staff_id))
