"""Commands of the staff room: people are made, sign in, and choose their language."""

import logging
from uuid import UUID

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY
from redis import Redis, RedisError
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.errors import InvalidInput, NotFound
from app.ids import new_id
from app.staff.models import Role, Staff
from app.staff.queries import Person, as_person

log = logging.getLogger(__name__)

LOCALES = ("zh", "en")
FAILURES_ALLOWED = 5
LOCKED_FOR_S = 15 * 60

_hasher = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
# Verified when the name is unknown, so that the answer takes as long as for a known one.
_NOBODY = _hasher.hash("nobody has this password")


class SignInRefused(InvalidInput):
    """Name and password do not belong together; which of both is wrong is not said."""

    code = "sign_in_refused"


class TooManyFailures(InvalidInput):
    """This name failed too often from this address; it has to wait."""

    status = 429
    code = "too_many_failures"


class FailureCount:
    """Failed sign-ins of a name from an address, kept in Redis for a quarter of an hour.

    Without Redis nothing is counted: people can still sign in, and argon2 alone slows guessing down.
    """

    def __init__(self, redis: "Redis", username: str, origin: str) -> None:
        self._redis = redis
        self._key = f"sign-in:{username.lower()}:{origin}"

    def is_locked(self) -> bool:
        """Return whether the name has failed too often."""
        try:
            return int(self._redis.get(self._key) or 0) >= FAILURES_ALLOWED
        except RedisError:
            log.warning("failed sign-ins are not counted: Redis does not answer")
            return False

    def add(self) -> None:
        """Count one more failure; each starts the quarter of an hour anew."""
        try:
            with self._redis.pipeline() as pipe:
                pipe.incr(self._key)
                pipe.expire(self._key, LOCKED_FOR_S)
                pipe.execute()
        except RedisError:
            log.warning("a failed sign-in was not counted: Redis does not answer")

    def clear(self) -> None:
        """Forget the failures after a success."""
        try:
            self._redis.delete(self._key)
        except RedisError:
            log.warning("failed sign-ins were not cleared: Redis does not answer")


def authenticate(session: Session, *, username: str, password: str, failures: FailureCount) -> Person:
    """Return the person whose name and password these are.

    Raises SignInRefused (also for people who are shut out), TooManyFailures after five failures.
    """
    if failures.is_locked():
        raise TooManyFailures("Too many failed attempts. Try again in %(minutes)s minutes.", minutes=LOCKED_FOR_S // 60)
    staff = session.scalar(select(Staff).where(Staff.username == username))
    if not _matches(staff, password) or staff is None or not staff.is_active:
        failures.add()
        raise SignInRefused("Account or password is wrong.")
    if _hasher.check_needs_rehash(staff.password_hash):
        staff.password_hash = _hasher.hash(password)
    failures.clear()
    return as_person(staff)


def create_staff(
    session: Session, *, username: str, display_name: str, password: str, role: Role, locale: str | None = None
) -> UUID:
    """Create a person who can sign in; returns their id. Raises InvalidInput when the name is taken or empty."""
    if not username or not password:
        raise InvalidInput("A name and a password are needed.")
    if session.scalar(select(Staff.id).where(Staff.username == username)) is not None:
        raise InvalidInput("The account name %(username)s is taken.", field="username", username=username)
    staff = Staff(
        id=new_id(),
        username=username,
        display_name=display_name,
        password_hash=_hasher.hash(password),
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


def end_sessions(session: Session, *, staff_id: UUID) -> None:
    """End every session of a person, wherever they are signed in. Raises NotFound."""
    epoch = Staff.session_epoch + 1
    found = session.scalar(update(Staff).where(Staff.id == staff_id).values(session_epoch=epoch).returning(Staff.id))
    if found is None:
        raise NotFound("There is no such account.")


def _matches(staff: Staff | None, password: str) -> bool:
    try:
        return _hasher.verify(staff.password_hash if staff else _NOBODY, password)
    except (VerificationError, InvalidHashError):
        return False
