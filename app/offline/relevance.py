"""Which of the passages found answer a ticket, by their words and by how the search ranked them. Pure."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from app.agent.values import Passage
from app.offline.answer_kinds import has_wanted_kind
from app.offline.words import bag, pieces

HEADING_WEIGHT = 0.5
"""What a word in the heading counts beside one in the text."""

RANK_WEIGHT = 0.4
"""What the search's own order counts beside the share of words."""

KIND_WEIGHT = 0.2
"""What it counts that a passage holds the kind of answer wanted: a time, an amount, a place to go."""

SHARED_LEAST = 0.1
"""The share of a question's words that a passage of another document must hold to be quoted beside the best ones."""

MAX_PASSAGES = 5

_EMPTY_WORDS = frozenset(
    re.findall(
        r"\S+",
        "怎么 怎样 如何 多久 多少 什么 为什 哪里 在哪 时候 可以 能不 不能 是不 不是 有没 没有 请问 一下 需要 要不 知道 "
        "我的 我们 你们 自己 这个 那个 一个 现在 今天 昨天 已经 还是 就是 然后 如果 因为 所以 但是",
    )
)


class Relevance:
    """Weighs words by how few of the passages hold them."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = _distinct(passages)
        holding = Counter(word for one in self._passages for word in set(pieces(f"{one.heading}\n{one.text}")))
        self._weights = {word: math.log(1 + len(self._passages) / count) for word, count in holding.items()}
        self._standing = _standing(self._passages)

    def share(self, question: str, text: str) -> float:
        """Return the share of the question's weighty words that stand in `text`, 0..1."""
        there = bag(text)
        wanted = {word: self._weights.get(word, 1.0) for word in bag(question) if word not in _EMPTY_WORDS}
        total = sum(wanted.values())
        return sum(weight for word, weight in wanted.items() if word in there) / total if total else 0.0

    def choose(self, questions: Sequence[str], sizes: Mapping[str, int], *, budget: int, floor: float) -> list[Passage]:
        """Return the passages to quote: the search's first, each question's best, then others that stand near.

        Those others are of the same documents or share words with a question. `sizes` is how many characters would be
        quoted of each passage, by ref; one of none is left out. `budget` (characters) and `floor` (least standing,
        0..2) bind the others only; with a floor of 0 whatever fits in is taken.
        """
        usable = [passage for passage in self._passages if sizes[passage.ref]]
        chosen = usable[:1]
        for question in questions if usable else ():
            best = max(usable, key=lambda passage: self._fit(question, passage))
            if best not in chosen:
                chosen.append(best)
        documents = {passage.doc_id for passage in chosen}
        for passage in sorted(usable, key=lambda one: -self._standing[one.ref]):
            size = sum(sizes[one.ref] for one in chosen) + sizes[passage.ref]
            if passage in chosen or self._standing[passage.ref] < floor or size > budget:
                continue
            if floor == 0 or passage.doc_id in documents or self._shares_words(questions, passage):
                chosen.append(passage)
        return chosen[:MAX_PASSAGES]

    def _shares_words(self, questions: Sequence[str], passage: Passage) -> bool:
        text = f"{passage.heading}\n{passage.text}"
        return any(self.share(question, text) >= SHARED_LEAST for question in questions)

    def _fit(self, question: str, passage: Passage) -> float:
        named = self.share(question, f"{passage.doc_title}\n{passage.heading}")
        said = self.share(question, passage.text)
        kind = KIND_WEIGHT * has_wanted_kind(question, passage.text)
        return said + HEADING_WEIGHT * named + RANK_WEIGHT * self._standing[passage.ref] + kind


def _distinct(passages: Sequence[Passage]) -> list[Passage]:
    """Leave out passages with a text that a better one has already: pieces of one section answer with the same text."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    return list(first.values())


def _standing(passages: Sequence[Passage]) -> dict[str, float]:
    """Return each passage's score in 0..1, plus up to 1 for a document of which much was found."""
    top = max((passage.fused for passage in passages), default=0.0)
    score = {passage.ref: passage.fused / top if top > 0 else 1.0 for passage in passages}
    documents: dict[UUID, float] = {}
    for passage in passages:
        documents[passage.doc_id] = documents.get(passage.doc_id, 0.0) + score[passage.ref]
    most = max(documents.values(), default=1.0)
    return {passage.ref: score[passage.ref] + documents[passage.doc_id] / most for passage in passages}
