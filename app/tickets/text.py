"""What counts as text that we keep: one normal form, no control characters."""

import unicodedata

_LINE_CONTROLS = frozenset("\n\t")


def normal_form(raw: str) -> str:
    """Return `raw` in NFC with `\\n` line ends and no blank edges; doing it twice changes nothing."""
    return unicodedata.normalize("NFC", raw.replace("\r\n", "\n").replace("\r", "\n")).strip()


def has_controls(text: str, *, lines: bool) -> bool:
    """Say whether `text` holds control characters or halves of a surrogate pair; `lines` lets \\n and \\t pass."""
    allowed = _LINE_CONTROLS if lines else frozenset()
    return any(char not in allowed and unicodedata.category(char) in ("Cc", "Cs") for char in text)


def without_controls(text: str) -> str:
    """Return one line of `text` without what `has_controls` finds, for words that are only looked for."""
    return "".join(" " if has_controls(char, lines=False) else char for char in text).strip()


def is_blank(text: str) -> bool:
    """Say whether nothing of `text` can be seen: only blanks and format characters such as a zero-width space."""
    return all(char.isspace() or unicodedata.category(char) in ("Cf", "Cc") for char in text)
