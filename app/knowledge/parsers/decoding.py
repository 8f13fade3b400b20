"""Bytes to text: UTF-8, GB18030 and UTF-16 are told apart; what is no text is refused."""

import codecs
import re
import unicodedata

from app.knowledge.errors import EmptyDocument, NotText

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KEPT_CONTROLS = "\n\t"
_STRANGE_LIMIT = 0.02
"""Share of characters that no text has (unassigned, private, control) beyond which a file is not text."""

_BLANK = re.compile(r"[\s\u200b\ufeff]*")


def decode(content: bytes) -> str:
    """Return the text, NFC, with `\\n` line ends and no control characters. Raises EmptyDocument or NotText."""
    text = _decode(content)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    strange = sum(map(_is_strange, text))
    if strange > _STRANGE_LIMIT * len(text):
        raise NotText("This file is not text: its content is binary or damaged.")
    text = unicodedata.normalize("NFC", "".join(char for char in text if not _is_strange(char)))
    if _BLANK.fullmatch(text):
        raise EmptyDocument("This file is empty.")
    return text


def _decode(content: bytes) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _try(content, encoding) or _refuse()
    if b"\0" in content:
        return _best(content, ("utf-16-le", "utf-16-be")) or _refuse()
    return _try(content, "utf-8") or _try(content, "gb18030") or ("" if not content else _refuse())


def _best(content: bytes, encodings: tuple[str, ...]) -> str | None:
    readings = [text for encoding in encodings if (text := _try(content, encoding))]
    return max(readings, key=_plausibility, default=None)


def _plausibility(text: str) -> float:
    """Return the share of characters that Chinese and English texts are made of."""
    usual = sum(char.isascii() or "\u3000" <= char <= "\u303f" or "\u4e00" <= char <= "\u9fff" for char in text)
    return usual / len(text)


def _try(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def _refuse() -> str:
    raise NotText("This file is not text in UTF-8, GB18030 or UTF-16.")


def _is_strange(char: str) -> bool:
    if char in _KEPT_CONTROLS:
        return False
    return unicodedata.category(char) in {"Cc", "Cn", "Co", "Cs"}
