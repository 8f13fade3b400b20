"""Links and HTML in a reply: what leads a reader out, or is read by a mail program as more than text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.guard.folding import fold

_ADDRESS = r"[!#-&*+\-./0-9:=?@a-z_~%]"
_HTML = re.compile(r"<(?!https?:)(?![^<>\s]*@[^<>\s]*>)[/!]?[a-z][a-z0-9:-]{0,30}(?:[ /][^<>]{0,500})?>|<!--")
_LINK = re.compile(
    rf"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]{{1,15}}://{_ADDRESS}*|(?:javascript|vbscript):{_ADDRESS}*|data:[a-z]+/{_ADDRESS}*"
    rf"|www\.{_ADDRESS}+"
    r"|(?<![a-z0-9._%+-]@)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,8}"
    rf"\.(?:com|cn|net|org|top|xyz|cc|vip|shop|club|io|ru|site|online)(?![a-z0-9@-])(?:[/:?]{_ADDRESS}*)?)"
)
_END_OF_SENTENCE = ".!?:*_~"


class LinkKind(StrEnum):
    """How a text leads out of itself."""

    LINK = "link"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class Link:
    """One link or tag: `text[start:end]` of the original text; `written` is that piece in lower case."""

    kind: LinkKind
    start: int
    end: int
    written: str


def find_links(text: str) -> tuple[Link, ...]:
    """Return every link and HTML tag in `text`, in order; a link inside a tag is part of the tag."""
    return tuple(sorted(_found(text), key=lambda link: link.start))


def _found(text: str) -> Iterator[Link]:
    folded = fold(text)
    tags = [match.span() for match in _HTML.finditer(folded.text)]
    for start, end in tags:
        yield _link(LinkKind.HTML, text, folded.span(start, end))
    outside = _blanked(folded.text, tags)
    for match in _LINK.finditer(outside):
        length = len(match[0].rstrip(_END_OF_SENTENCE)) or len(match[0])
        yield _link(LinkKind.LINK, text, folded.span(match.start(), match.start() + length))


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in spans:
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return text


def _link(kind: LinkKind, text: str, span: tuple[int, int]) -> Link:
    # Not the folded spelling: a look-alike of a known address must stay another address.
    return Link(kind, *span, text[slice(*span)].lower())
