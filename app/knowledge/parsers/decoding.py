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

HEAD_BYTES = 16_384
"""How much of a file is read to know its title."""

_BLANK = re.compile(r"[\s\u200b\ufeff]*")


def decode(content: bytes) -> str:
    """Return the text, NFC, with `\\n` line ends and no control characters. Raises EmptyDocument or NotText."""
    return _cleaned(_decode(content, whole=True))


def decode_head(content: bytes) -> str:
    """Return the first lines of the text as `decode` does, at a cost that does not grow with the file.

    Raises EmptyDocument or NotText where already the head shows it.
    """
    return _cleaned(_decode(content[:HEAD_BYTES], whole=len(content) <= HEAD_BYTES))


def _cleaned(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    strange = sum(map(_is_strange, text))
    if strange > _STRANGE_LIMIT * len(text):
        raise NotText("This file is not text: its content is binary or damaged.")
    text = unicodedata.normalize("NFC", "".join(char for char in text if not _is_strange(char)))
    if _BLANK.fullmatch(text):
        raise EmptyDocument("This file is empty.")
    return text


def _decode(content: bytes, *, whole: bool) -> str:
    """Return what the bytes say; where they are not the `whole` file, they may end within a character."""
    readings = [text for encoding in _encodings(content) if (text := _try(content, encoding, whole)) is not None]
    if not readings:
        raise NotText("This file is not text in UTF-8, GB18030 or UTF-16.")
    return max(readings, key=_plausibility) if b"\0" in content else readings[0]


def _encodings(content: bytes) -> tuple[str, ...]:
    """Return what the bytes may be, likeliest first; NUL bytes are in no text but UTF-16."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return (encoding,)
    return ("utf-16-le", "utf-16-be") if b"\0" in content else ("utf-8", "gb18030")


def _plausibility(text: str) -> float:
    """Return the share of characters that Chinese and English texts are made of."""
    usual = sum(char.isascii() or "\u3000" <= char <= "\u303f" or "\u4e00" <= char <= "\u9fff" for char in text)
    return usual / max(1, len(text))


def _try(content: bytes, encoding: str, whole: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(content, final=whole)
    except UnicodeDecodeError:
        return None


def _is_strange(char: str) -> bool:
    if char in _KEPT_CONTROLS:
        return False
    return unicodedata.category(char) in {"Cc", "Cn", "Co", "Cs"}
