"""Plain text: paragraphs at blank lines, numbered or bracketed lines as headings, list items, questions and answers."""

import re
from pathlib import PurePath

from app.knowledge.parsers.blocks import BlockKind, Outline, Parsed, begins_part

SUFFIXES = (".txt",)

_HEADING_LENGTH = 40
_HEADING = re.compile(
    r"第[一二三四五六七八九十百\d]+[章节条部篇]\s*\S|[一二三四五六七八九十]+[、.．]\s*\S|【[^】]+】$"
    r"|#{1,6}\s+\S|\d+(\.\d+)*[.、．]\s*\S"
)
_ITEM = re.compile(r"([-*•·●▪]|[(（]?\d{1,3}[)）.、．]|[①-⑳])\s*\S")
_SENTENCE_END = "。！？!?；;，,、：:"


def parse(name: str, text: str) -> Parsed:
    """Return title and blocks; the title is a first line that stands alone, else the file's name."""
    paragraphs = [
        lines
        for part in re.split(r"\n\s*\n", text)
        if (lines := [line.strip() for line in part.split("\n") if line.strip()])
    ]
    title = PurePath(name).stem
    if len(paragraphs) > 1 and _stands_alone(paragraphs[0]):
        title = paragraphs.pop(0)[0].lstrip("# ")
    outline = Outline()
    for lines in paragraphs:
        _read_paragraph(lines, outline)
    return Parsed(title, outline.finish())


def _stands_alone(lines: list[str]) -> bool:
    return len(lines) == 1 and len(lines[0]) <= _HEADING_LENGTH and lines[0][-1] not in _SENTENCE_END


def _read_paragraph(lines: list[str], outline: Outline) -> None:
    """Cut where an item, a question or an answer begins; other lines belong to what they follow."""
    rest = lines
    if _is_heading(lines):
        outline.heading(1, lines[0].lstrip("# ").strip("【】"))
        rest = lines[1:]
    for index, line in enumerate(rest):
        if _ITEM.match(line):
            outline.add(BlockKind.LIST_ITEM, line)
        elif index == 0 or begins_part(line):
            outline.add(BlockKind.PARAGRAPH, line)
        else:
            outline.extend(line)


def _is_heading(lines: list[str]) -> bool:
    """A numbered line is a heading where text of another kind follows it, else an item of a list."""
    first = lines[0]
    if len(first) > _HEADING_LENGTH or first[-1] in _SENTENCE_END or not _HEADING.match(first):
        return False
    return len(lines) == 1 or not (_ITEM.match(first) and _ITEM.match(lines[1]))
