"""Markdown, read by markdown-it: headings, paragraphs, list items, table rows as `column：value` and code."""

import re
from collections.abc import Sequence
from pathlib import PurePath

import frontmatter
from markdown_it import MarkdownIt
from markdown_it.token import Token
from yaml import YAMLError

from app.errors import InvalidInput
from app.knowledge.errors import EmptyDocument
from app.knowledge.parsers.blocks import Block, BlockKind, Outline, Parsed, begins_part

SUFFIXES = (".md", ".markdown")

_TAG_LIMIT = 20
_TITLE_LIMIT = 200
_CHINESE = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# HTML stays literal text: help documents are data, and what a person sees in the source is what can be found.
_READER = MarkdownIt("commonmark", {"html": False}).enable("table")


def parse(name: str, text: str) -> Parsed:
    """Return title (front matter, else first heading, else the file's name), tags and blocks.

    Raises EmptyDocument, or InvalidInput when the front matter is no YAML.
    """
    matter, body = _split_front_matter(text)
    tokens = _READER.parse(_COMMENT.sub("", body))
    title = _text_of(matter.get("title"))
    if tokens and tokens[0].tag == "h1" and title in ("", _plain(tokens[1])):
        title = _plain(tokens[1])
        tokens = tokens[3:]
    blocks = _Reading(tokens).blocks()
    title = title or PurePath(name).stem
    if not blocks:
        raise EmptyDocument("This document has no text below its title.")
    return Parsed(title[:_TITLE_LIMIT], blocks, _tags(matter.get("tags")))


def _split_front_matter(text: str) -> tuple[dict[str, object], str]:
    try:
        post = frontmatter.loads(text)
    except YAMLError as error:
        raise InvalidInput("The front matter between the --- lines is not valid YAML.") from error
    if not post.metadata:
        # Text between two rules is no front matter; the library would drop it.
        return {}, text
    return post.metadata, post.content


def _text_of(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, (str, int, float)) else ""


def _tags(value: object) -> tuple[str, ...]:
    values: Sequence[object] = value if isinstance(value, list) else str(value or "").split(",")
    tags = [tag[:50] for entry in values if (tag := _text_of(entry))]
    return tuple(dict.fromkeys(tags))[:_TAG_LIMIT]


class _Reading:
    """One pass over the tokens of a document."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._outline = Outline()
        self._lists: list[int | None] = []
        self._marker = ""
        self._header: list[str] = []
        self._row: list[str] = []
        self._in_body = False

    def blocks(self) -> tuple[Block, ...]:
        for index, token in enumerate(self._tokens):
            if token.type == "inline":
                self._inline(self._tokens[index - 1], token)
            elif token.type in ("fence", "code_block"):
                self._outline.add(BlockKind.CODE, token.content)
            else:
                self._structure(token)
        return self._outline.finish()

    def _structure(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._begin_item()
            case "thead_open" | "tbody_open":
                self._in_body = token.type == "tbody_open"
            case "tr_open":
                self._row = []
            case "thead_close":
                self._header = self._row
            case "tr_close" if self._in_body:
                self._end_row()

    def _begin_item(self) -> None:
        number = self._lists[-1]
        if number is None:
            self._marker = "- "
        else:
            self._marker = f"{number}. "
            self._lists[-1] = number + 1

    def _end_row(self) -> None:
        cells = zip(self._header, self._row, strict=False)
        text = "；".join(f"{column}：{cell}" if column else cell for column, cell in cells if cell)
        self._outline.add(BlockKind.TABLE_ROW, text)

    def _inline(self, opener: Token, token: Token) -> None:
        text = _plain(token)
        if opener.type == "heading_open":
            self._outline.heading(int(opener.tag[1]), text)
        elif opener.type in ("th_open", "td_open"):
            self._row.append(text)
        elif self._lists and self._marker:
            self._outline.add(BlockKind.LIST_ITEM, self._marker + text)
            self._marker = ""
        elif self._lists:
            self._outline.extend(text)
        else:
            for part in text.split("\n"):
                self._outline.add(BlockKind.PARAGRAPH, part)


def _plain(token: Token) -> str:
    """Return the text that a reader sees: marks are dropped, a link keeps its words and its address."""
    parts: list[str] = []
    address = ""
    for child in token.children or ():
        match child.type:
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "link_open":
                address = str(child.attrGet("href") or "")
            case "link_close" if address.startswith(("http", "mailto:")) and address not in parts[-1:]:
                parts.append(f"（{address}）")
            case _:
                parts.append(child.content)
    return _join_lines("".join(parts))


def _join_lines(text: str) -> str:
    """Join wrapped lines: Chinese without a space, other text with one; a question or an answer keeps its own line."""
    joined = ""
    for line in filter(None, map(str.strip, text.split("\n"))):
        seamless = not joined or (_CHINESE.match(joined[-1]) and _CHINESE.match(line[0]))
        between = "\n" if joined and begins_part(line) else "" if seamless else " "
        joined += between + line
    return joined
