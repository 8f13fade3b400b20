"""Fields of a new ticket: any input becomes a normalised ticket, or errors that name the fields."""

import unicodedata
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.intake.fields import FIELDS, FieldError, InvalidFields, NewTicket, parse_key, parse_new_ticket

GOOD: dict[str, object] = {"customer_id": "C-1001", "subject": "优惠券用不了", "content": "结算页显示不可用"}


# The first draw builds tables of all characters, which takes seconds on a busy machine.
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def wrong_fields(**changes: object) -> list[str]:
    with pytest.raises(InvalidFields) as refused:
        parse_new_ticket({**GOOD, **changes})
    return [error.field for error in refused.value.errors]


def test_defaults() -> None:
    assert parse_new_ticket(GOOD) == NewTicket("C-1001", "", "优惠券用不了", "结算页显示不可用", "web")


def test_text_is_normalised() -> None:
    decomposed = unicodedata.normalize("NFD", "Café")
    ticket = parse_new_ticket({**GOOD, "subject": f"  {decomposed}\r\n", "content": "一\r\n二\u202e\r三\n"})
    assert ticket.subject == "Café"
    assert ticket.content == "一\n二\n三"


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(InvalidFields) as refused:
        parse_new_ticket({"customer_id": "has space", "customer_name": "x" * 81, "subject": "", "channel": "fax"})
    assert [error.field for error in refused.value.errors] == list(FIELDS)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("customer_id", None),
        ("customer_id", 10231),
        ("customer_id", "x" * 65),
        ("customer_id", "客户"),
        ("subject", " \n "),
        ("subject", "\u200b\u200b"),
        ("subject", "\u3164\u2800\u0301"),
        ("content", "\u2800\n\u0301"),
        ("subject", "two\nlines"),
        ("subject", "字" * 201),
        ("content", "字" * 10_001),
        ("content", "a\x00b"),
        ("content", "a\x1bb"),
        ("content", "half \ud800 pair"),
        ("content", ["list"]),
        ("customer_name", "a\tb"),
        ("channel", ""),
        ("channel", True),
    ],
)
def test_a_fault_names_its_field(field: str, value: object) -> None:
    assert wrong_fields(**{field: value}) == [field]


def test_limits_are_inclusive() -> None:
    ticket = parse_new_ticket(
        {**GOOD, "customer_id": "x" * 64, "customer_name": "名" * 80, "subject": "字" * 200, "content": "字" * 10_000}
    )
    assert len(ticket.content) == 10_000


def attempt(fields: dict[str, Any]) -> tuple[NewTicket | None, tuple[FieldError, ...]]:
    try:
        return parse_new_ticket(fields), ()
    except InvalidFields as refused:
        return None, refused.errors


@relaxed
@given(st.dictionaries(st.sampled_from(FIELDS), st.one_of(st.none(), st.text(), st.integers(), st.binary())))
def test_any_input_parses_or_is_refused_by_field(fields: dict[str, Any]) -> None:
    ticket, errors = attempt(fields)
    assert (ticket is None) == bool(errors)
    assert {error.field for error in errors} <= set(FIELDS)
    assert all(error.message % error.values for error in errors)


@relaxed
@given(st.text(), st.text(max_size=90))
def test_what_is_taken_is_in_normal_form(content: str, name: str) -> None:
    fields = {**GOOD, "content": content, "customer_name": name}
    ticket, errors = attempt(fields)
    if ticket is None:
        assert {error.field for error in errors} <= {"content", "customer_name"}
        return
    lines = content.replace("\r\n", "\n").replace("\r", "\n")
    assert ticket.content == unicodedata.normalize("NFC", lines).strip()
    ticket.content.encode()
    again = parse_new_ticket({name: str(getattr(ticket, name)) for name in FIELDS})
    assert again == ticket
    assert again.digest() == ticket.digest()


@pytest.mark.parametrize("key", [None, 7, "short", "x" * 201, "has a space", "schlüssel-1", "tab\there-8"])
def test_bad_keys(key: object) -> None:
    with pytest.raises(InvalidFields) as refused:
        parse_key(key)
    assert refused.value.errors[0].field == "idempotency_key"


def test_good_key() -> None:
    assert parse_key("order-4711/a") == "order-4711/a"
