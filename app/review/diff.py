"""What a person changed between draft and sent reply, in pieces that can be read: for Chinese, runs of characters.

Two passes keep the work bounded whatever the texts are: sentences first, then characters and Latin words within the
sentences that differ, unless those are too long to compare in a moment.
"""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal

from pydantic import BaseModel, ConfigDict

_SENTENCE = re.compile(r"[^。！？!?\n]*[。！？!?\n]*")
_TOKEN = re.compile(r"[A-Za-z0-9]+|\s+|.", re.DOTALL)
_MOST_PAIRS = 1_000_000
"""Pairs of tokens that the second pass compares at most; beyond it the stretch counts as replaced."""
_ISLAND = 2
"""Characters that agree between two changes count as a match from this many on; fewer agree by chance."""

Op = Literal["same", "ins", "del"]


class Segment(BaseModel):
    """A stretch of text that stayed, was put in, or was taken out."""

    model_config = ConfigDict(frozen=True)

    op: Op
    text: str


def compare(before: str, after: str) -> tuple[Segment, ...]:
    """Return the segments that lead from `before` to `after`: same + del spell the one, same + ins the other."""
    joined = _join(_coarse(_SENTENCE.findall(before), _SENTENCE.findall(after)))
    return tuple(Segment(op=op, text=text) for op, text in _join(_without_islands(joined)))


def changed_percent(segments: tuple[Segment, ...]) -> int:
    """Return how much of both texts was changed, 0 to 100; 0 only when nothing was."""
    changed = sum(len(segment.text) for segment in segments if segment.op != "same")
    total = changed + 2 * sum(len(segment.text) for segment in segments if segment.op == "same")
    return max(1, round(100 * changed / total)) if changed else 0


Piece = tuple[Op, str]


def _coarse(old: list[str], new: list[str]) -> Iterator[Piece]:
    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            yield "same", "".join(old[a:b])
        else:
            yield from _fine("".join(old[a:b]), "".join(new[c:d]))


def _fine(old: str, new: str) -> Iterator[Piece]:
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    yield "same", "".join(a[:head])
    yield from _middle(a[head : len(a) - tail], b[head : len(b) - tail])
    yield "same", "".join(a[len(a) - tail :])


def _middle(a: list[str], b: list[str]) -> Iterator[Piece]:
    if len(a) * len(b) > _MOST_PAIRS:
        yield "del", "".join(a)
        yield "ins", "".join(b)
        return
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "same", "".join(a[i:j])
        else:
            yield "del", "".join(a[i:j])
            yield "ins", "".join(b[k:m])


def _common(a: list[str], b: list[str]) -> int:
    """Return how many tokens both begin with."""
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        count += 1
    return count


def _without_islands(pieces: list[Piece]) -> Iterator[Piece]:
    """Count a lone character that agrees between two changes as changed too: such a diff reads better."""
    for index, (op, text) in enumerate(pieces):
        between = 0 < index < len(pieces) - 1
        if op == "same" and between and len(text) < _ISLAND and text.isalnum():
            yield "del", text
            yield "ins", text
        else:
            yield op, text


def _join(pieces: Iterator[Piece]) -> list[Piece]:
    """Merge neighbours; between two stretches that stayed, what went comes before what came."""
    joined: list[Piece] = []
    stretch = {"same": "", "del": "", "ins": ""}

    def close(*ops: Op) -> None:
        joined.extend((op, stretch[op]) for op in ops if stretch[op])
        stretch.update(dict.fromkeys(ops, ""))

    for op, text in pieces:
        if op != "same" and text:
            close("same")
        elif text:
            close("del", "ins")
        stretch[op] += text
    close("same", "del", "ins")
    return joined
