"""A passage taken apart into pieces that may be quoted, and the choice among them. Pure; every piece is verbatim."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.offline.words import simplified

WHOLE_PASSAGE = 300
"""Characters up to which a passage is quoted whole: its author meant it to be read together."""

ANSWERS_QUESTION = 0.2
"""The least score with which one of several questions and answers is quoted beside the best."""

_SENTENCE = re.compile(r".+?(?:[。！？!?；;…]+[”’」』）)\"]*|\.(?=\s)|$)")
_ITEM = re.compile(r"\s*(?:[-*•·]|\d{1,2}[.、)）]|[（(]\d{1,2}[)）]|[①-⑳])\s*")
_NUMBER = re.compile(r"(\d{1,2})[.、)）]\s*")
_QUESTION = re.compile(r"\s*(?:问题?|q|question)\s*\d*\s*[:：]\s*", re.IGNORECASE)
_ANSWER = re.compile(r"\s*(?:答案?|a|answer)\s*\d*\s*[:：]\s*", re.IGNORECASE)
_LABEL = re.compile(r"([^：:，,。]{1,40})[：:]")
_LABELLED_ITEMS = 3
_POINTS_BACK = re.compile(
    r"上面|上述|上文|前述|如上(?!所)|上表|以上(?:商品|情况|步骤|材料|条件|内容|方法|几)|\b(?:the|as) above\b",
    re.IGNORECASE,
)
_POINTS_TO_TABLE = re.compile(r"见下[表图文]|[如下]下?[表图]所示|\b(?:table|figure) below\b", re.IGNORECASE)
_ANNOUNCES = re.compile(r"[：:]$|(?:如下|以下[^。]{0,8})[。.：:]?$")

Score = Callable[[str], float]
"""How well a text answers, 0 for not at all."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A piece of a passage, verbatim, and what stood before it there: a new line, a space, or nothing."""

    text: str
    before: Literal["\n", " ", ""]


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    is_item: bool = False
    question: str | None = None

    @property
    def label(self) -> str | None:
        """What stands before the colon of a list item."""
        found = _LABEL.match(_ITEM.sub("", self.text, count=1)) if self.is_item else None
        return found[1] if found else None


def pick_quotes(text: str, score: Score, questions: Sequence[Score] = ()) -> list[Quote]:
    """Return the pieces of a passage to quote, in the passage's order; at least one unless it says nothing.

    `score` is how well a text answers the ticket, `questions` how well it answers each question in it.
    """
    lines = _lines(text)
    if any(line.question is not None for line in lines):
        lines = _best_answers(lines, score, questions)
    lines = _fitting_items(lines, score)
    if sum(len(line.text) for line in lines) > WHOLE_PASSAGE:
        return _self_contained(_best_stretch(lines, score))
    return _self_contained([quote for line in lines for quote in _sentences(line)])


def labels(text: str) -> list[str]:
    """Return what stands before the colons of list items."""
    return [line.label for line in _lines(text) if line.label]


def without(quotes: Sequence[Quote], left_out: Sequence[str]) -> list[Quote]:
    """Return the quotes that name none of `left_out`."""
    return _self_contained([quote for quote in quotes if not names_any(quote.text, left_out)])


def names_any(text: str, names: Sequence[str]) -> bool:
    """Return whether `text` holds one of `names`, in either spelling of Chinese and whatever the case."""
    plain = simplified(text).casefold()
    return any(simplified(name).casefold() in plain for name in names)


def _self_contained(quotes: Sequence[Quote]) -> list[Quote]:
    """Drop sentences that point to a text which is not quoted with them."""
    kept: list[Quote] = []
    for at, quote in enumerate(quotes):
        follows_list = any(_ITEM.match(one.text) for one in kept) and not _ITEM.match(quote.text)
        has_list = at + 1 < len(quotes) and quotes[at + 1].before == "\n"
        dangles = (
            (_POINTS_BACK.search(quote.text) and not follows_list)
            or _POINTS_TO_TABLE.search(quote.text)
            or (_ANNOUNCES.search(quote.text) and not has_list)
        )
        if not dangles:
            kept.append(quote)
    return kept if len(kept) == len(quotes) else _unnumbered(kept)


def _unnumbered(quotes: Sequence[Quote]) -> list[Quote]:
    """Take the numbers off steps of which one is missing."""
    numbers = [int(found[1]) for quote in quotes if (found := _NUMBER.match(quote.text))]
    if numbers == list(range(1, len(numbers) + 1)):
        return list(quotes)
    return [Quote(rest, quote.before) for quote in quotes if (rest := _NUMBER.sub("", quote.text, count=1))]


def _lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    question: str | None = None
    for raw in filter(str.strip, text.split("\n")):
        if found := _QUESTION.match(raw):
            question = raw[found.end() :].strip()
            continue
        answer = _ANSWER.match(raw) if question is not None else None
        said = raw[answer.end() :] if answer else raw
        if said.strip():
            lines.append(_Line(said.strip(), _ITEM.match(said) is not None, question))
    return lines


def _best_answers(lines: Sequence[_Line], score: Score, questions: Sequence[Score]) -> list[_Line]:
    """Keep the answer that fits the ticket best, by its question and its words, and those that fit its questions."""
    asked = list(dict.fromkeys(line.question for line in lines if line.question is not None))
    whole = {one: "\n".join([one, *(line.text for line in lines if line.question == one)]) for one in asked}

    def fit(one: str, by: Score) -> float:
        return by(one) + by(whole[one])

    kept = {max(asked, key=lambda one: fit(one, score))}
    for by in questions:
        best = max(asked, key=lambda one: fit(one, by))
        if by(whole[best]) >= ANSWERS_QUESTION:
            kept.add(best)
    return [line for line in lines if line.question in kept]


def _fitting_items(lines: Sequence[_Line], score: Score) -> list[_Line]:
    """Of a list whose items begin with a label, keep those that the customer names; all, if none or most are named."""
    labelled = [line for line in lines if line.label is not None]
    named = [line for line in labelled if line.label is not None and score(line.label) > 0]
    if len(labelled) < _LABELLED_ITEMS or not named or len(named) * 2 > len(labelled):
        return list(lines)
    return [line for line in lines if line.label is None or line in named]


def _best_stretch(lines: Sequence[_Line], score: Score) -> list[Quote]:
    """Return the neighbouring sentences around the best one, up to WHOLE_PASSAGE characters."""
    pieces = [quote for line in lines for quote in _sentences(line)]
    scores = [score(piece.text) for piece in pieces]
    first = last = max(range(len(pieces)), key=lambda at: scores[at] + 0.5 * sum(scores[at + 1 : at + 2]))
    size = len(pieces[first].text)
    while first > 0 or last + 1 < len(pieces):
        # What follows explains more often than what comes before.
        forward = last + 1 < len(pieces) and (first == 0 or scores[last + 1] >= scores[first - 1])
        following = last + 1 if forward else first - 1
        size += len(pieces[following].text)
        if size > WHOLE_PASSAGE:
            break
        first, last = min(first, following), max(last, following)
    return pieces[first : last + 1]


def _sentences(line: _Line) -> list[Quote]:
    marker = _ITEM.match(line.text)
    # The marker of an item ("1. ") is no sentence of its own.
    ends = [found.end() for found in _SENTENCE.finditer(line.text, marker.end() if marker else 0)]
    pieces = [line.text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return [
        Quote(piece.strip(), "\n" if at == 0 else " " if piece[0].isspace() else "")
        for at, piece in enumerate(pieces)
        if piece.strip()
    ]
