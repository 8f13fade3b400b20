"""Finds personal data in texts: mobile numbers, bank cards, ID cards, e-mail addresses; and masks names.

Numbers are found in full or half width, in Chinese or circled digits, and with spaces, dashes, other marks or line
breaks between their digits. Order numbers, hotlines and tracking
numbers are left alone where their form tells them apart.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from app.guard.folding import fold
from app.guard.look_alikes import as_digits

_GAP = r"[ -]{0,3}"
_MOBILE = re.compile(rf"(?<!\d)(?=((?:(?:\+|00)?86{_GAP}|00?)?1{_GAP}[3-9](?:{_GAP}\d){{9}})(?!\d))")
_CARDS = tuple(re.compile(rf"(?<!\d)(?=([2-69](?:{_GAP}\d){{{length - 1}}})(?!\d))") for length in range(16, 20))
# Any mark but those of an amount. It may separate numbers of a list too, so `_is_one_number` looks at the groups.
_WIDE = r"(?:</?[a-z]{1,8}>|[^\w$¥€£%+]|_){0,5}"
_WIDE_MOBILE = re.compile(rf"(?<!\d)(?=(1{_WIDE}[3-9](?:{_WIDE}\d){{9}})(?!\d))")
_WIDE_CARDS = tuple(re.compile(rf"(?<!\d)(?=([2-69](?:{_WIDE}\d){{{n - 1}}})(?!\d))") for n in range(16, 20))
_WIDE_ID_CARD = re.compile(rf"(?<!\d)(?=([1-9](?:{_WIDE}\d){{16}}{_WIDE}[\dx])(?!\d))")
_CARD_ISSUERS = re.compile(r"6\d{15,18}$|955[89]\d{15}$|(?:4\d|5[1-5]|2[2-7]|35)\d{14}$")
_ID_CARD = re.compile(rf"(?<!\d)(?=([1-9](?:{_GAP}\d){{16}}{_GAP}[\dx])(?!\d))")
_EMAIL = re.compile(r"[a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,8}\.[a-z]{2,24}")

_ORDER_PREFIX = re.compile(r"(?<![a-z0-9])[a-z]{1,8}\d{0,8}-(?:[a-z0-9]{1,12}-){0,3}$")
_USUAL_GROUPS = frozenset({(3, 4, 4), (4, 4, 4, 4), (4, 4, 4, 4, 1), (4, 4, 4, 4, 2), (4, 4, 4, 4, 3)})
_MOBILE_GROUPS = frozenset({(11,), (3, 4, 4), (3, 8), (7, 4), (3, 3, 5), (3, 2, 2, 2, 2), (3, 2, 3, 3), (5, 6), (6, 5)})
_TAG = re.compile(r"<[^<>]*>")
_OF_A_LIST = re.compile(r"[,、;/|~]")
_UNIT = re.compile(r" ?(?:元|块|折|件|个|天|日|月|年|号|分|斤|克|米|码|rmb|cny|yuan)")
_FEW_LOOK_ALIKES = 6
_AROUND = 40
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECKS = "10x98765432"
_PROVINCES = frozenset(
    [*range(11, 16), *range(21, 24), *range(31, 38), *range(41, 47), *range(50, 55), *range(61, 66), 71, 81, 82, 83, 91]
)


class DataKind(StrEnum):
    """What a piece of personal data is."""

    MOBILE = "mobile"
    BANK_CARD = "bank_card"
    ID_CARD = "id_card"
    EMAIL = "email"


@dataclass(frozen=True, slots=True)
class PersonalData:
    """One piece: `text[start:end]` of the original text."""

    kind: DataKind
    start: int
    end: int


def find(text: str) -> tuple[PersonalData, ...]:
    """Return every piece of personal data in `text`, in order, without overlaps."""
    folded = fold(text)
    found = sorted(
        (PersonalData(kind, *folded.span(start, end)) for kind, start, end in _candidates(folded.text)),
        key=lambda piece: (piece.start, -piece.end),
    )
    merged: list[PersonalData] = []
    for piece in found:
        if merged and piece.start < merged[-1].end:
            merged[-1] = _join(merged[-1], piece)
        else:
            merged.append(piece)
    return tuple(merged)


def mask_name(name: str) -> str:
    """Return a name that only its bearer would know again: 陈雨桐 becomes 陈**, John Smith becomes J**."""
    stripped = name.strip()
    return stripped[:1] + "*" * min(max(len(stripped) - 1, 1), 2) if stripped else ""


def _candidates(text: str) -> Iterator[tuple[DataKind, int, int]]:
    yield from _numbers(text)
    spelled = as_digits(text)
    for kind, start, end in _numbers(spelled) if spelled != text else ():
        look_alikes = sum(old != new for old, new in zip(text[start:end], spelled[start:end], strict=True))
        # Between marks a good part of it must be spelled out; in one piece more than the 一 of "周一3800138000".
        starts_alike = text[start] != spelled[start] and not text[start].isascii()
        if look_alikes >= _FEW_LOOK_ALIKES or (look_alikes > starts_alike and spelled[start:end].isalnum()):
            yield kind, start, end
    for match in _EMAIL.finditer(text):
        yield DataKind.EMAIL, *match.span()


def _numbers(text: str) -> Iterator[tuple[DataKind, int, int]]:
    for match in _MOBILE.finditer(text):
        if not _is_order_number(text, match):
            yield DataKind.MOBILE, *match.span(1)
    for pattern in _CARDS:
        for match in pattern.finditer(text):
            if _is_card(_digits(match[1])) and not _is_order_number(text, match):
                yield DataKind.BANK_CARD, *match.span(1)
    for match in _ID_CARD.finditer(text):
        if _is_id_card(_digits(match[1])):
            yield DataKind.ID_CARD, *match.span(1)
    yield from _marked_numbers(text)


def _marked_numbers(text: str) -> Iterator[tuple[DataKind, int, int]]:
    """Yield numbers with marks between their digits: (138)1234-5678, 138_1234_5678, **138**12345678."""
    for match in _WIDE_MOBILE.finditer(text):
        if _is_one_number(text, match, _MOBILE_GROUPS) and not _is_order_number(text, match):
            yield DataKind.MOBILE, *match.span(1)
    for pattern in _WIDE_CARDS:
        for match in pattern.finditer(text):
            if _is_card(_digits(match[1])) and _is_one_number(text, match, _USUAL_GROUPS):
                yield DataKind.BANK_CARD, *match.span(1)
    for match in _WIDE_ID_CARD.finditer(text):
        if _is_id_card(_digits(match[1])):
            yield DataKind.ID_CARD, *match.span(1)


def _is_one_number(text: str, match: re.Match[str], usual: frozenset[tuple[int, ...]]) -> bool:
    """Tell a number from a list of them, a date or an address: by its groups, and by what goes on around it."""
    groups = tuple(len(group) for group in re.findall(r"\d+", _TAG.sub(" ", match[1])))
    if groups not in usual and max(groups) > 1:
        return False
    start, end = match.span(1)
    gaps = [gap for gap in re.split(r"\d+", match[1]) if gap]
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    if gaps and re.match(rf"{re.escape(gaps[-1])}\d", after):
        return False
    if gaps and re.search(rf"\d{re.escape(gaps[0])}$", before) and not before.endswith(f"86{gaps[0]}"):
        return False
    return not (_UNIT.match(after) and any(_OF_A_LIST.search(gap) for gap in gaps))


def _join(first: PersonalData, second: PersonalData) -> PersonalData:
    longer = max(first, second, key=lambda piece: piece.end - piece.start)
    return PersonalData(longer.kind, first.start, max(first.end, second.end))


def _digits(matched: str) -> str:
    return re.sub(r"[^\dx]", "", _TAG.sub("", matched))


def _is_order_number(text: str, match: re.Match[str]) -> bool:
    """True for numbers like SL-1391126-0381: letters, a dash, and dashes where no phone or card has them."""
    number = match[1]
    if "-" not in number or not _ORDER_PREFIX.search(text, max(0, match.start(1) - 48), match.start(1)):
        return False
    return tuple(len(group) for group in re.split(r"[ -]+", number)) not in _USUAL_GROUPS


def _is_card(digits: str) -> bool:
    """True when a bank in use here could have issued it and its check digit (Luhn) is right."""
    if not _CARD_ISSUERS.match(digits):
        return False
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(int(digit) for digit in digits[::-2]) + sum(n - 9 if n > 9 else n for n in doubled)) % 10 == 0


def _is_id_card(digits: str) -> bool:
    """True when province, date of birth and check digit (GB 11643) are right."""
    try:
        born = date(int(digits[6:10]), int(digits[10:12]), int(digits[12:14]))
    except ValueError:
        return False
    if int(digits[:2]) not in _PROVINCES or not 1900 <= born.year < 2100:
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, digits, strict=False))
    return _ID_CHECKS[total % 11] == digits[17]
