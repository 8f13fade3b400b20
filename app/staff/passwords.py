"""Passwords: kept as argon2id. A check takes tens of milliseconds and 64 MiB, and is nothing to hold a session for."""

from dataclasses import dataclass

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

_hasher = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
# Verified when the name is unknown, so that the answer takes as long as for a known one.
_NOBODY = _hasher.hash("nobody has this password")


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """What a check found; `better_hash` is there when the kept one was made with weaker parameters than ours."""

    right: bool
    better_hash: str | None = None


def hash_password(password: str) -> str:
    """Return what to keep of a password."""
    return _hasher.hash(password)


def check_password(kept: str | None, password: str) -> PasswordCheck:
    """Compare a password with what is kept of it; None, for nobody, takes as long and is never right."""
    try:
        _hasher.verify(kept or _NOBODY, password)
    except (VerificationError, InvalidHashError):
        return PasswordCheck(right=False)
    if kept is None:
        return PasswordCheck(right=False)
    return PasswordCheck(right=True, better_hash=_hasher.hash(password) if _hasher.check_needs_rehash(kept) else None)
