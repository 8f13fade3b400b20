"""Blocks to pieces: small ones to find, with the surrounding section to answer with. Pure.

A piece never crosses a heading. A section that fits is one piece; a longer one is cut between its blocks, and a block
that is too long by itself is slid over at sentence ends, with some overlap. A table row stays whole.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from app.knowledge.parsers.blocks import Block, BlockKind, Parsed

TARGET = 400
"""Characters of a piece that is cut out of a longer section."""
OVERLAP = 50
"""Characters, at most, that a piece repeats of the one before when a block is slid over."""
SMALLEST = 100
"""A shorter piece at the end of a section joins the one before where that stays within LARGEST."""
LARGEST = 500
"""No piece but a table row is longer."""
ROW_LIMIT = 2_000
SECTION_LIMIT = 1_200
"""Characters of the surrounding text that a piece answers with."""

_SENTENCE = re.compile(r".+?(?:[。！？!?；;…]+[”’」』）)\"]*|\.(?=\s)|\n+|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece to find (`text`, verbatim in `section`) and the text around it to answer with."""

    heading: str
    text: str
    section: str


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a section's text, by character."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Characters in it."""
        return self.end - self.start


def indexed_text(title: str, heading: str, text: str) -> str:
    """Return what is embedded and segmented of a piece: `title > heading`, then its text."""
    return f"{' > '.join(filter(None, (title, heading)))}\n{text}"


def content_hash(indexed: str) -> str:
    """Return the name of an indexed text: equal texts share one vector."""
    return hashlib.sha256(indexed.encode()).hexdigest()


def chunk(parsed: Parsed) -> list[Piece]:
    """Return the pieces of a document in reading order."""
    pieces: list[Piece] = []
    for headings, group in groupby(parsed.blocks, key=lambda block: block.headings):
        text, spans, blocks = _lay_out(list(group))
        for span in _cut(text, spans, blocks):
            section = _surroundings(text, spans, span)
            pieces.append(Piece(" > ".join(headings), text[span.start : span.end], text[section.start : section.end]))
    return pieces


def _lay_out(blocks: Sequence[Block]) -> tuple[str, list[Span], Sequence[Block]]:
    """Return a section's text, one block a line, and where each block stands in it."""
    spans: list[Span] = []
    position = 0
    for block in blocks:
        spans.append(Span(position, position + len(block.text)))
        position += len(block.text) + 1
    return "\n".join(block.text for block in blocks), spans, blocks


def _cut(text: str, spans: Sequence[Span], blocks: Sequence[Block]) -> list[Span]:
    paired = any(block.kind is BlockKind.QUESTION_ANSWER for block in blocks)
    if len(text) <= TARGET and not paired:
        return [Span(0, len(text))]
    pieces: list[Span] = []
    for block, span in zip(blocks, spans, strict=True):
        whole = block.kind is BlockKind.TABLE_ROW and span.length <= ROW_LIMIT
        if span.length > LARGEST and not whole:
            pieces += _slide(text, span)
        elif pieces and not paired and span.end - pieces[-1].start <= TARGET:
            pieces[-1] = Span(pieces[-1].start, span.end)
        else:
            pieces.append(span)
    return pieces if paired else _without_scraps(pieces)


def _without_scraps(pieces: list[Span]) -> list[Span]:
    """Join a piece that is too short to say anything to the one before, where that stays within bounds."""
    joined: list[Span] = []
    for span in pieces:
        if joined and span.length < SMALLEST and span.end - joined[-1].start <= LARGEST:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return joined


def _slide(text: str, block: Span) -> Iterator[Span]:
    """Yield pieces of whole sentences; each begins with the sentences that end the one before, up to OVERLAP."""
    sentences = list(_sentences(text, block))
    first = 0
    while first < len(sentences):
        last = first
        while last + 1 < len(sentences) and sentences[last + 1].end - sentences[first].start <= TARGET:
            last += 1
        if last + 2 == len(sentences) and sentences[-1].end - sentences[first].start <= LARGEST:
            last += 1
        yield Span(sentences[first].start, sentences[last].end)
        following = last + 1
        while following - 1 > first and sentences[last].end - sentences[following - 1].start <= OVERLAP:
            following -= 1
        first = following if last + 1 < len(sentences) else len(sentences)


def _sentences(text: str, block: Span) -> Iterator[Span]:
    """Yield the sentences of a block; a stretch without any end is cut by length, each part repeating OVERLAP."""
    for found in _SENTENCE.finditer(text, block.start, block.end):
        start = found.start()
        while found.end() - start > TARGET:
            yield Span(start, start + TARGET)
            start += TARGET - OVERLAP
        yield Span(start, found.end())


def _surroundings(text: str, spans: Sequence[Span], piece: Span) -> Span:
    """Return the whole blocks around a piece, within SECTION_LIMIT; the piece alone where blocks are huge."""
    if len(text) <= SECTION_LIMIT:
        return Span(0, len(text))
    start, end = piece.start, piece.end
    before = [span for span in spans if span.start < start]
    after = [span for span in spans if span.end > end]
    for span in after:
        if span.end - start > SECTION_LIMIT:
            break
        end = span.end
    for span in reversed(before):
        if end - span.start > SECTION_LIMIT:
            break
        start = span.start
    return Span(start, end)
