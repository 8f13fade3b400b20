"""What counts as text that we keep: one normal form, no control characters."""

import unicodedata

from app.visible import without_bidi

_LINE_CONTROLS = frozenset("\n\t")


def normal_form(raw: str) -> str:
    """Return `raw` in NFC with `\\n` line ends, no blank edges and no bidi controls; twice changes nothing more."""
    lines = without_bidi(raw).replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", lines).strip()


def has_controls(text: str, *, lines: bool) -> bool:
    """Say whether `text` holds control characters or halves of a surrogate pair; `lines` lets \\n and \\t pass."""
    allowed = _LINE_CONTROLS if lines else frozenset()
    return any(char not in allowed and unicodedata.category(char) in ("Cc", "Cs") for char in text)


def without_controls(text: str) -> str:
    """Return one line of `text` without what `has_controls` finds, for words that are only looked for."""
    return "".join(" " if has_controls(char, lines=False) else char for char in text).strip()
