"""Which words of a cited passage a draft leans on, so that a reviewer need not search for them."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from app.guard.evidence import split_sentences
from app.guard.folding import fold

ENOUGH = 0.5
"""Share of a passage sentence's character pairs that a draft sentence must hold, or the other way round."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A sentence of a passage; `matched` says that the draft leans on it."""

    text: str
    matched: bool


def stretches(passage: str, citing: Iterable[str]) -> tuple[Stretch, ...]:
    """Return the sentences of `passage`, marked where one of the draft's `citing` sentences says the same."""
    claims = [pairs for text in citing if (pairs := _pairs(text))]
    return tuple(Stretch(sentence, _is_said(_pairs(sentence), claims)) for sentence in split_sentences(passage))


def _is_said(sentence: set[str], claims: list[set[str]]) -> bool:
    return any(len(sentence & claim) >= ENOUGH * min(len(sentence), len(claim)) for claim in claims if sentence)


def _pairs(text: str) -> set[str]:
    letters = [char for char in fold(text).text if char.isalnum()]
    return {left + right for left, right in pairwise(letters)}
