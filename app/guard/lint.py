"""Checks a reply before it may leave: words, over-promises, personal data, links. Every finding blocks sending."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.guard import personal_data
from app.guard.folding import Folded, fold, squeeze
from app.guard.lexicon import NOT_A_PROMISE, PROMISES, SENSITIVE, WordList
from app.guard.links import LinkKind, find_links
from app.guard.personal_data import DataKind
from app.msgids import msgid


class FindingKind(StrEnum):
    """What is wrong with a piece of text."""

    SENSITIVE = "sensitive"
    PROMISE = "promise"
    PERSONAL_DATA = "personal_data"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Finding:
    """One piece that must change: `text` is exactly `original[start:end]`; `label` (English msgid) says why."""

    kind: FindingKind
    start: int
    end: int
    text: str
    label: str


_LISTS_DIGEST = hashlib.sha256(repr((SENSITIVE, PROMISES, NOT_A_PROMISE)).encode()).hexdigest()
LINT_VERSION = f"2-{_LISTS_DIGEST[:10]}"
"""Changes with the lists by itself (raise the first number with the code), so that an approval can tell old rules."""

# A company's own address is part of many replies: e-mail is masked in logs, and not held against a reply.
_DATA_LABELS = {
    DataKind.MOBILE: msgid("Mobile number"),
    DataKind.BANK_CARD: msgid("Bank card number"),
    DataKind.ID_CARD: msgid("ID card number"),
}
_LINK_LABELS = {
    LinkKind.LINK: msgid("Link that stands in no help document"),
    LinkKind.HTML: msgid("HTML code"),
}


def _compile(lists: tuple[WordList, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((entry.label, re.compile("|".join(map(_bounded, entry.words)))) for entry in lists)


def _bounded(word: str) -> str:
    """Return a Latin word that matches only whole: no "dumb" in "dumbbell"."""
    return rf"(?<![a-z])(?:{word})(?![a-z])" if word.isascii() and word[0].isalpha() else f"(?:{word})"


_SENSITIVE = _compile(SENSITIVE)
_PROMISES = _compile(PROMISES)
_NOT_A_PROMISE = re.compile(NOT_A_PROMISE)
_LOOK_BACK = 16


def lint(text: str, known_links: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """Return all that must change before `text` may be sent, in order of position.

    `known_links` are those of our own help documents, as `Link.written`; any other blocks.
    """
    folded = squeeze(fold(text))
    found = [
        *_words(FindingKind.SENSITIVE, _SENSITIVE, folded, text),
        *_words(FindingKind.PROMISE, _PROMISES, folded, text),
        *_personal_data(text),
        *_links(text, known_links),
    ]
    return tuple(sorted(found, key=lambda finding: (finding.start, finding.end)))


def _words(
    kind: FindingKind, lists: tuple[tuple[str, re.Pattern[str]], ...], folded: Folded, text: str
) -> Iterator[Finding]:
    for label, pattern in lists:
        for match in pattern.finditer(folded.text):
            if kind is FindingKind.PROMISE and _is_no_promise(folded.text, match.start()):
                continue
            start, end = folded.span(*match.span())
            yield Finding(kind, start, end, text[start:end], label)


def _is_no_promise(folded: str, start: int) -> bool:
    return _NOT_A_PROMISE.search(folded[max(0, start - _LOOK_BACK) : start]) is not None


def _personal_data(text: str) -> Iterator[Finding]:
    for piece in personal_data.find(text):
        if label := _DATA_LABELS.get(piece.kind):
            yield Finding(FindingKind.PERSONAL_DATA, piece.start, piece.end, text[piece.start : piece.end], label)


def _links(text: str, known: frozenset[str]) -> Iterator[Finding]:
    for link in find_links(text):
        if link.written not in known:
            yield Finding(FindingKind.LINK, link.start, link.end, text[link.start : link.end], _LINK_LABELS[link.kind])
