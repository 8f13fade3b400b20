"""Digits that are not written as digits: 一三八, 壹叁捌, 幺, ①③⑧, ¹³⁸, and letters within a number (l38O...)."""

import re
import unicodedata

_CHINESE = str.maketrans("〇零一二三四五六七八九幺壹贰叁肆伍陆柒捌玖", "00123456789" + "1123456789")
_LETTERS = str.maketrans("oli", "011")
_WITH_LETTERS = re.compile(r"(?<![a-z\d])[\doli]{11}(?![a-z\d])")
_MOST_LETTERS = 5


def as_digits(folded: str) -> str:
    """Return folded text with every look-alike as the digit it stands for; the length stays the same."""
    digits = "".join(map(_digit, folded.translate(_CHINESE)))
    return _WITH_LETTERS.sub(_without_letters, digits)


def _digit(char: str) -> str:
    value = -1 if char.isascii() else unicodedata.digit(char, -1)
    return char if value < 0 else str(value)


def _without_letters(match: re.Match[str]) -> str:
    letters = sum(char.isalpha() for char in match[0])
    return match[0].translate(_LETTERS) if letters <= _MOST_LETTERS else match[0]
