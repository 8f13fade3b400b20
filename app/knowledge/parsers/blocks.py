"""What a parser returns: blocks of plain text, each with the headings that it stands under."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class BlockKind(StrEnum):
    """What a block is; it decides where a section may be cut."""

    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE_ROW = "table_row"
    QUESTION_ANSWER = "question_answer"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document that belongs together, as plain text; `headings` from the outermost in, title left out."""

    kind: BlockKind
    text: str
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document as its parser read it."""

    title: str
    blocks: tuple[Block, ...]
    tags: tuple[str, ...] = ()


_QUESTION = re.compile(r"(问题?|q|question)\s*\d*\s*[:：]", re.IGNORECASE)
_ANSWER = re.compile(r"(答案?|a|answer)\s*\d*\s*[:：]", re.IGNORECASE)


def begins_part(line: str) -> bool:
    """Return whether a line begins a question or an answer (`问：`, `答：`, `Q:`, `A:`)."""
    return bool(_QUESTION.match(line) or _ANSWER.match(line))


class Outline:
    """Collects blocks under the headings read so far; a heading that nothing stands under becomes a block itself."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []
        self._blocks: list[Block] = []
        self._bare = False

    def heading(self, level: int, text: str) -> None:
        """Begin a section; `level` counts from 1, the outermost."""
        if self._path and level <= self._path[-1][0]:
            self._keep_bare_heading()
        self._path = [entry for entry in self._path if entry[0] < level] + [(level, text)]
        self._bare = True

    def add(self, kind: BlockKind, text: str) -> None:
        """Add a block to the section; blank text is left out."""
        if text.strip():
            self._blocks.append(Block(kind, text.strip(), tuple(heading for _, heading in self._path)))
            self._bare = False

    def extend(self, line: str) -> None:
        """Add a line to the section's last block."""
        if self._bare or not self._blocks:
            self.add(BlockKind.PARAGRAPH, line)
            return
        last = self._blocks[-1]
        self._blocks[-1] = Block(last.kind, f"{last.text}\n{line}", last.headings)

    def finish(self) -> tuple[Block, ...]:
        """Return all blocks, each question joined to its answer."""
        self._keep_bare_heading()
        return _pair_questions(self._blocks)

    def _keep_bare_heading(self) -> None:
        if self._bare:
            path = tuple(heading for _, heading in self._path)
            self._blocks.append(Block(BlockKind.PARAGRAPH, path[-1], path[:-1]))
            self._bare = False


def _pair_questions(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return the blocks with each question joined to the blocks of its answer (`问：… 答：…`, `Q: … A: …`)."""
    joined: list[Block] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.headings == block.headings
            and _QUESTION.match(last.text)
            and _ANSWER.match(block.text)
            and not _has_answer(last.text)
        ):
            joined[-1] = Block(BlockKind.QUESTION_ANSWER, f"{last.text}\n{block.text}", block.headings)
        elif _QUESTION.match(block.text) and _has_answer(block.text):
            joined.append(Block(BlockKind.QUESTION_ANSWER, block.text, block.headings))
        else:
            joined.append(block)
    return tuple(joined)


def _has_answer(text: str) -> bool:
    return any(_ANSWER.match(line) for line in text.splitlines())
