"""Which characters of a text nobody sees: they may hide a word, turn a line round, or make nothing look like a text."""

import re
import unicodedata

FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that count as letters, marks or symbols and still show as nothing, such as the Hangul fillers."""

_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_UNSEEN = frozenset({"Cc", "Cf", "Mn", "Me"})


def is_blank(text: str) -> bool:
    """Say whether nothing of `text` can be seen: only blanks, format characters, fillers and marks without a letter."""
    return all(char.isspace() or char in FILLERS or unicodedata.category(char) in _UNSEEN for char in text)


def without_bidi(text: str) -> str:
    """Return `text` without the controls that change the direction of what follows (U+202E shows it backwards)."""
    return _BIDI.sub("", text)
