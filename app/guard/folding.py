"""Folds a text for matching, so that spelling tricks hide nothing, and leads every match back to the original."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache

from opencc import OpenCC

from app.visible import FILLERS

_DROPPED = frozenset({"Cf", "Mn", "Me"})
"""Zero-width and combining characters: they can stand within a word or a number and are not seen."""
_LOOK_ALIKES = str.maketrans("аеорсухіјѕԁһӏкмтвгαεικνορτυχ", "aeopcyxijsdhlkmtbraeikvoptux")
"""Cyrillic and Greek letters that a reader takes for Latin ones."""
_MARKUP = re.compile(r"(?<=[\u3400-\u9fff])[*_~`^|]+(?=[\u3400-\u9fff])")
_SPELLED_OUT = re.compile(r"[\u3400-\u9fff](?:[.·•・/、, -][\u3400-\u9fff]){2,}")
_BETWEEN = re.compile(r"[^\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Folded:
    """Lower case, half width, plain digits and dashes, simplified characters, Latin letters for their look-alikes;
    no invisible characters, one space at most, none beside CJK.

    `origins[i]` is the index in the original text that folded character `i` came from.
    """

    text: str
    origins: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the original half-open span of the folded one; `start < end`."""
        return self.origins[start], self.origins[end - 1] + 1


def fold(text: str) -> Folded:
    """Return `text` folded; work and size grow with its length."""
    chars: list[str] = []
    origins: list[int] = []
    for index, char in enumerate(text):
        for folded in _fold_char(char):
            if folded == " " and (not chars or chars[-1] == " " or is_cjk(chars[-1])):
                continue
            if is_cjk(folded) and chars and chars[-1] == " ":
                chars.pop()
                origins.pop()
            chars.append(folded)
            origins.append(index)
    return Folded("".join(chars), tuple(origins))


def squeeze(folded: Folded) -> Folded:
    """Return `folded` without the marks that stand between Chinese characters of one word: 保.证.到.账, **保**证."""
    dropped = {index for match in _MARKUP.finditer(folded.text) for index in range(*match.span())}
    for match in _SPELLED_OUT.finditer(folded.text):
        dropped.update(match.start() + mark.start() for mark in _BETWEEN.finditer(match[0]))
    if not dropped:
        return folded
    kept = [index for index in range(len(folded.text)) if index not in dropped]
    return Folded("".join(folded.text[index] for index in kept), tuple(folded.origins[index] for index in kept))


def is_cjk(char: str) -> bool:
    """True for Chinese characters and their punctuation, between which spaces mean nothing."""
    return "\u3400" <= char <= "\u9fff" or "\u3001" <= char <= "\u303f"


@lru_cache(maxsize=8_192)
def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if char.isspace():
        return " "
    if category in _DROPPED or category == "Cc" or char in FILLERS:
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Pd" or char == "\u2212":
        return "-"
    compatible = unicodedata.normalize("NFKC", char)
    # "①" must not become a digit: it would grow onto the number that follows and hide it.
    if any(part.isdecimal() or part.isspace() for part in compatible):
        return char
    folded = compatible.casefold().translate(_LOOK_ALIKES)
    return str(_simplifier().convert(folded)) if is_cjk(folded[:1]) else folded


@cache
def _simplifier() -> OpenCC:
    return OpenCC("t2s")
