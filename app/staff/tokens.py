"""Bearer tokens of source systems: shown once when issued, kept as SHA-256 only."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.clock import now
from app.errors import InvalidInput, NotFound
from app.ids import new_id
from app.staff.models import ApiToken

PREFIX = "dd_"
_SOURCE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """Who a token stands for. `source` names the space of its idempotency keys."""

    name: str
    source: str


def issue_token(session: Session, *, name: str, source: str, token: str | None = None) -> str:
    """Make a token and return it; it can't be read again. `token` is for the demo's known one.

    Raises InvalidInput for a name or source that can't be taken, or a name that is in use.
    """
    if not name.strip() or len(name) > 80:
        raise InvalidInput("A token needs a name of at most 80 characters.", field="name")
    if not _SOURCE.fullmatch(source):
        raise InvalidInput("A source is named by lower-case letters, digits, - and _.", field="source")
    if session.scalar(select(ApiToken.id).where(ApiToken.name == name, ApiToken.revoked_at.is_(None))) is not None:
        raise InvalidInput("A token with the name %(name)s is in use.", field="name", name=name)
    token = token or PREFIX + secrets.token_urlsafe(32)
    session.add(ApiToken(id=new_id(), name=name, source=source, digest=_digest(token)))
    session.flush()
    return token


def verify_token(session: Session, token: str) -> TokenHolder | None:
    """Return who holds a token, or None for one that is unknown or revoked; notes its use at most once a minute."""
    row = session.scalar(select(ApiToken).where(ApiToken.digest == _digest(token), ApiToken.revoked_at.is_(None)))
    if row is None:
        return None
    if row.last_used_at is None or row.last_used_at < now() - _USE_NOTED_EVERY:
        row.last_used_at = func.now()
    return TokenHolder(row.name, row.source)


def revoke_token(session: Session, name: str) -> None:
    """End the token of this name at once. Raises NotFound."""
    revoked = session.scalar(
        update(ApiToken)
        .where(ApiToken.name == name, ApiToken.revoked_at.is_(None))
        .values(revoked_at=func.now())
        .returning(ApiToken.id)
    )
    if revoked is None:
        raise NotFound("There is no token of that name in use.")


def _digest(token: str) -> str:
    # A token is long and random, so that a fast hash is enough; the lookup by digest leaks no prefix of it.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
