"""The tree of errors that callers may see: each knows its HTTP status, a code and words that are safe to show.

`message` is an English msgid (translated at the edge) with `%(name)s` places filled from `values`; it never holds
ticket text, model output or secrets. Rooms subclass these; web and api map them in one place.
"""

from typing import ClassVar


class AppError(Exception):
    """Base of all errors with words for a person. `field` names the input that is at fault, if one is."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, field: str | None = None, **values: object) -> None:
        super().__init__(message % values if values else message)
        self.message = message
        self.values = values
        self.field = field


class InvalidInput(AppError):
    """The caller sent something that can't be taken; `field` says which."""

    status = 422
    code = "invalid_input"


class NotFound(AppError):
    """The thing that the caller names does not exist (or is not theirs to see)."""

    status = 404
    code = "not_found"


class Forbidden(AppError):
    """The caller is known but may not do this."""

    status = 403
    code = "forbidden"


class Conflict(AppError):
    """Something moved since the caller looked; nothing was changed."""

    status = 409
    code = "conflict"


class Unavailable(AppError):
    """An outside part does not answer; trying again later may work."""

    status = 503
    code = "unavailable"
    retryable = True
