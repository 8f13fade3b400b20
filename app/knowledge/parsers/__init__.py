"""Files to blocks: one module a type of file, one list."""

from collections.abc import Callable
from pathlib import PurePath

from app.knowledge.errors import UnsupportedFile
from app.knowledge.parsers import md, txt
from app.knowledge.parsers.blocks import Parsed

Parse = Callable[[str, bytes], Parsed]

PARSERS: tuple[tuple[tuple[str, ...], Parse], ...] = ((md.SUFFIXES, md.parse), (txt.SUFFIXES, txt.parse))
SUFFIXES: tuple[str, ...] = tuple(suffix for suffixes, _ in PARSERS for suffix in suffixes)


def parse(name: str, content: bytes) -> Parsed:
    """Return what the file `name` says. Raises UnsupportedFile, NotText, EmptyDocument or InvalidInput."""
    suffix = PurePath(name).suffix.lower()
    for suffixes, parser in PARSERS:
        if suffix in suffixes:
            return parser(name, content)
    raise UnsupportedFile("Files of this type can't be read; allowed are %(types)s.", types=" ".join(SUFFIXES))
