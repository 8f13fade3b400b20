"""Texts as bags of words for comparing by wording: Chinese as two-character pieces, the rest as whole words. Pure."""

import re
from collections import Counter
from functools import lru_cache

from opencc import OpenCC

_HAN_RUN = re.compile(r"[㐀-鿿]+")
_LATIN_WORD = re.compile(r"[a-z]+(?:-?\d+)*|\d+(?:[.,]\d+)*")
_ENGLISH_FILLER = frozenset(
    re.findall(
        "[a-z]+",
        "a an and any are as at be been but by can could did do does for from had has have how i if in is it its me my "
        "no not of on or our please so that the their them there these they this to was we were what when where which "
        "who why will with would you your hi hello thanks thank dear",
    )
)


@lru_cache(maxsize=1)
def _converter() -> OpenCC:
    return OpenCC("t2s")


def simplified(text: str) -> str:
    """Return `text` with traditional characters made simple, so that both spellings meet."""
    converted: str = _converter().convert(text)
    return converted


def pieces(text: str) -> list[str]:
    """Return the pieces of `text` in order: pairs of Chinese characters, words and numbers in lower case."""
    plain = simplified(text).lower()
    found = [run[at : at + 2] for run in _HAN_RUN.findall(plain) for at in range(max(1, len(run) - 1))]
    return found + [word for word in _LATIN_WORD.findall(plain) if word not in _ENGLISH_FILLER]


def bag(text: str) -> Counter[str]:
    """Return how often each piece stands in `text`."""
    return Counter(pieces(text))
