"""The fields of what arrives, as any channel sends them: checked all at once, so that every fault is named."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.errors import InvalidInput
from app.msgids import msgid
from app.tickets.text import has_controls, normal_form
from app.visible import is_blank

SUBJECT_MAX = 200
CONTENT_MAX = 10_000
CUSTOMER_ID_MAX = 64
CUSTOMER_NAME_MAX = 80
KEY_MIN, KEY_MAX = 8, 200
_CUSTOMER_ID = re.compile(r"[A-Za-z0-9._:@-]+")
_KEY = re.compile(r"[\x21-\x7e]+")


class Channel(StrEnum):
    """How a customer reaches us."""

    APP = "app"
    WEB = "web"
    EMAIL = "email"
    MERCHANT = "merchant"
    PHONE = "phone"


FIELDS = ("customer_id", "customer_name", "subject", "content", "channel")


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field; `message` is an English msgid with `%(name)s` places filled from `values`."""

    field: str
    message: str
    values: Mapping[str, object] = dataclasses.field(default_factory=dict)


class InvalidFields(InvalidInput):
    """Some fields can't be taken; `errors` has one entry for each, in the order of the form."""

    code = "invalid_fields"

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        super().__init__("Some fields need another look.", field=errors[0].field)
        self.errors = errors


@dataclass(frozen=True, slots=True)
class NewTicket:
    """A ticket as it arrives, normalised. `customer_name` is empty when the source does not say."""

    customer_id: str
    customer_name: str
    subject: str
    content: str
    channel: Channel

    def digest(self) -> str:
        """Return SHA-256 over all fields: two requests with equal digests ask for the same ticket."""
        canonical = json.dumps(dataclasses.asdict(self), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class _Refused(Exception):
    def __init__(self, message: str, **values: object) -> None:
        super().__init__(message)
        self.message = message
        self.values = values


def parse_new_ticket(fields: Mapping[str, object]) -> NewTicket:
    """Return the ticket that `fields` describe (see FIELDS; others are ignored). Raises InvalidFields."""
    errors: list[FieldError] = []

    def take(name: str, check: Callable[[str], str], *, default: str | None = None) -> str:
        raw = fields.get(name)
        try:
            if raw is None and default is not None:
                return default
            return check(_text(raw))
        except _Refused as refused:
            errors.append(FieldError(name, refused.message, refused.values))
            return ""

    customer_id = take("customer_id", _customer_id)
    customer_name = take("customer_name", _customer_name, default="")
    subject = take("subject", _subject)
    content = take("content", _content)
    channel = take("channel", _channel, default=Channel.WEB)
    if errors:
        raise InvalidFields(tuple(errors))
    return NewTicket(customer_id, customer_name, subject, content, Channel(channel))


def message_text(raw: object) -> str:
    """Return what a customer wrote on a ticket that there is, normalised. Raises InvalidFields."""
    try:
        return _content(_text(raw))
    except _Refused as refused:
        raise InvalidFields((FieldError("content", refused.message, refused.values),)) from None


def parse_key(raw: object) -> str:
    """Return an idempotency key: 8 to 200 printable ASCII characters. Raises InvalidFields."""
    try:
        key = _text(raw)
        if not key:
            raise _Refused(msgid("This field is required."))
        if not KEY_MIN <= len(key) <= KEY_MAX or not _KEY.fullmatch(key):
            raise _Refused(
                msgid("Use %(least)s to %(most)s printable ASCII characters without spaces."),
                least=KEY_MIN,
                most=KEY_MAX,
            )
    except _Refused as refused:
        raise InvalidFields((FieldError("idempotency_key", refused.message, refused.values),)) from None
    return key


def _text(raw: object) -> str:
    if raw is None:
        raise _Refused(msgid("This field is required."))
    if not isinstance(raw, str):
        raise _Refused(msgid("This field must be text."))
    return normal_form(raw)


def _customer_id(text: str) -> str:
    if not text:
        raise _Refused(msgid("This field is required."))
    if len(text) > CUSTOMER_ID_MAX:
        raise _Refused(msgid("At most %(most)s characters."), most=CUSTOMER_ID_MAX)
    if not _CUSTOMER_ID.fullmatch(text):
        raise _Refused(msgid("Only letters, digits and . _ : @ - are allowed."))
    return text


def _customer_name(text: str) -> str:
    return "" if is_blank(text) and not has_controls(text, lines=False) else _one_line(text, CUSTOMER_NAME_MAX)


def _subject(text: str) -> str:
    return _one_line(text, SUBJECT_MAX)


def _content(text: str) -> str:
    return _bounded(text, CONTENT_MAX, lines=True)


def _one_line(text: str, most: int) -> str:
    return _bounded(text, most, lines=False)


def _bounded(text: str, most: int, *, lines: bool) -> str:
    if has_controls(text, lines=lines):
        raise _Refused(
            msgid("Control characters are not allowed.") if lines else msgid("One line without control characters.")
        )
    if is_blank(text):
        raise _Refused(msgid("This field is required."))
    if len(text) > most:
        raise _Refused(msgid("At most %(most)s characters."), most=most)
    return text


def _channel(text: str) -> str:
    if text not in tuple(Channel):
        raise _Refused(msgid("Choose one of: %(choices)s."), choices=", ".join(Channel))
    return text
