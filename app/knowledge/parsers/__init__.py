"""Files to blocks: one module a type of file, one list."""

from collections.abc import Callable
from pathlib import PurePath

from app.knowledge.errors import EmptyDocument, UnsupportedFile
from app.knowledge.parsers import md, txt
from app.knowledge.parsers.blocks import Parsed
from app.knowledge.parsers.decoding import HEAD_BYTES, decode, decode_head

Parse = Callable[[str, str], Parsed]

PARSERS: tuple[tuple[tuple[str, ...], Parse], ...] = ((md.SUFFIXES, md.parse), (txt.SUFFIXES, txt.parse))
SUFFIXES: tuple[str, ...] = tuple(suffix for suffixes, _ in PARSERS for suffix in suffixes)


def parse(name: str, content: bytes) -> Parsed:
    """Return what the file `name` says. Raises UnsupportedFile, NotText, EmptyDocument or InvalidInput."""
    return _parser_of(name)(name, decode(content))


def title_of(name: str, content: bytes) -> str:
    """Return the title of the file `name` by its first lines, which costs the same however long it is.

    Raises what `parse` raises, where the first lines show it.
    """
    parser = _parser_of(name)
    try:
        return parser(name, decode_head(content)).title
    except EmptyDocument:
        if len(content) <= HEAD_BYTES:
            raise
        return PurePath(name).stem


def _parser_of(name: str) -> Parse:
    suffix = PurePath(name).suffix.lower()
    for suffixes, parser in PARSERS:
        if suffix in suffixes:
            return parser
    raise UnsupportedFile("Files of this type can't be read; allowed are %(types)s.", types=" ".join(SUFFIXES))
