"""Which sentence of a reply is supported by which passage, judged by the words and numbers that both hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.agent.values import Passage, Sentence
from app.guard.folding import fold
from app.guard.numerals import arabic

MIN_OVERLAP = 0.45
"""Share of a sentence's character pairs and Latin words that a passage must hold to support it."""
NEAR_BEST = 0.8
"""A second passage is named too when its overlap reaches this share of the best one's."""

_END = re.compile(r"(?:[。！？!?；;…]+|(?<![\d\s])\.(?=\s|$))[”’」』）)\"']*\s*|\n\s*")
_LIST_MARK = re.compile(r"^\s*(?:\d{1,2}[.、)）]|[(（]\d{1,2}[)）])\s*")
_RUN = re.compile(r"[a-z]{2,}|[\u3400-\u9fff]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


@dataclass(frozen=True, slots=True)
class _Content:
    words: frozenset[str]
    numbers: frozenset[str]


def cite_sentences(text: str, passages: Sequence[Passage]) -> tuple[Sentence, ...]:
    """Split `text` into sentences, each with the refs of the passages that support it; none is a claim of our own."""
    sources = [(passage.ref, _content(f"{passage.heading}\n{passage.text}")) for passage in passages]
    return tuple(Sentence(text=part, refs=_supporters(part, sources)) for part in split_sentences(text))


def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a Chinese or English text; joined together they are `text` again."""
    parts, start = [], 0
    for match in _END.finditer(text):
        parts.append(text[start : match.end()])
        start = match.end()
    return tuple(part for part in (*parts, text[start:]) if part)


def _supporters(sentence: str, sources: Sequence[tuple[str, _Content]]) -> tuple[str, ...]:
    claim = _content(_LIST_MARK.sub("", sentence))
    if not claim.words and not claim.numbers:
        return ()
    overlaps = {ref: _overlap(claim, source) for ref, source in sources}
    enough = max(MIN_OVERLAP, NEAR_BEST * max(overlaps.values(), default=0.0))
    return tuple(ref for ref, overlap in overlaps.items() if overlap >= enough)


def _overlap(claim: _Content, source: _Content) -> float:
    """Return the share of the claim's words that the source holds; 0 when a number of the claim is not in it."""
    if not claim.numbers <= source.numbers:
        return 0.0
    if not claim.words:
        return 1.0
    return len(claim.words & source.words) / len(claim.words)


def _content(text: str) -> _Content:
    folded = _THOUSANDS.sub("", arabic(fold(text).text))
    words: set[str] = set()
    for run in _RUN.findall(folded):
        words.update([run] if run.isascii() or len(run) == 1 else map("".join, pairwise(run)))
    return _Content(frozenset(words), frozenset(_NUMBER.findall(folded)))
