"""Which of the passages found answer a ticket, by their words and by how the search ranked them. Pure."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.agent.values import Passage
from app.offline.answer_kinds import has_wanted_kind, wants_kind
from app.offline.quoting import labels
from app.offline.words import bag, pieces, simplified

HEADING_WEIGHT = 0.5
"""What a word in the heading counts beside one in the text."""

NAMED_BY_WEIGHT = 0.5
"""What it counts that the customer's words name the whole of a heading."""

RANK_WEIGHT = 0.3
"""What the search's own order counts beside the share of words."""

KIND_WEIGHT = 0.5
"""What the share of the ticket in a line counts that holds the kind of answer wanted: a time, an amount, a place."""

WHOLE_WEIGHT = 0.8
"""What fitting the whole ticket counts beside fitting one question of it: a question leaves its topic to the rest."""

ACTION_WEIGHT = 0.25
"""What each thing to do at once counts, where a ticket is urgent."""

LEAST_ACTIONS = 2
"""How many of them make a passage first aid."""

CLEAR_SHARE = 0.15
"""The share of a question's words that a passage must hold to be quoted as an answer to it."""

NEAR_BEST = 0.9
"""How near to the best answer to a question another must come to be quoted, too."""

NEAR_BEST_THERE = 0.75
"""The same for one of a document that is quoted anyway."""

MOST_FURTHER = 1
"""How many such others are quoted, at the most."""

LABEL_WEIGHT = 0.2
"""What it counts that the customer names an item of the list in a passage."""

FOUND_WELL = 0.8
"""The search's score, beside its best, from which it is trusted where the words of a question say nothing."""

LETTER_WEIGHT = 0.3
"""What single Chinese characters count beside words: short questions are put in other words than the answers."""

CLEAR_LETTERS = 0.2
"""The share of a question's Chinese characters in a passage from which the question is not called open."""

MAX_PASSAGES = 4

_ACTIONS = re.compile(
    r"立即|立刻|马上|切断|断电|停止使用|停用|拨打|冻结|报警|挂断|就医|撤离|远离|不要触碰|"
    r"\b(?:immediately|at once|unplug|stop using|call|freeze|evacuate)\b",
    re.IGNORECASE,
)
_HAN = re.compile(r"[㐀-鿿]")
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\S+",
        "怎么 怎样 如何 多久 多少 什么 为什 哪里 在哪 时候 可以 能不 不能 是不 不是 有没 没有 请问 一下 需要 要不 知道 "
        "帮我 我改 吗还 告诉 我们 我想 想知 知道 接下 下来 "
        "我的 我们 你们 自己 这个 那个 一个 现在 今天 昨天 已经 还是 就是 然后 如果 因为 所以 但是",
    )
)


@dataclass(frozen=True, slots=True)
class Length:
    """How much is quoted beside the answers: passages that also fit in `budget` characters; `topics` is the most."""

    budget: int = 0
    topics: int = MAX_PASSAGES


@dataclass(frozen=True, slots=True)
class Choice:
    """The passages to quote, best first, and the questions (their places) that none of them answers."""

    passages: tuple[Passage, ...]
    unanswered: tuple[int, ...]


class Relevance:
    """Weighs words by how few of the passages hold them. `whole` is all that the customer wrote."""

    def __init__(self, passages: Sequence[Passage], whole: str) -> None:
        self._passages = _distinct(passages)
        self._weights = _rarity(pieces(f"{one.heading}\n{one.text}") for one in self._passages)
        self._score = _score(self._passages)
        self._standing = _standing(self._passages, self._score)
        self._letters = _rarity(_HAN.findall(simplified(f"{one.heading}\n{one.text}")) for one in self._passages)
        self._whole = whole

    def share(self, question: str, text: str) -> float:
        """Return the share of the question's weighty words that stand in `text`, 0..1."""
        there = bag(text)
        wanted = {word: self._weights.get(word, 1.0) for word in bag(question) if word not in _EMPTY_WORDS}
        total = sum(wanted.values())
        return sum(weight for word, weight in wanted.items() if word in there) / total if total else 0.0

    def choose(self, questions: Sequence[str], sizes: Mapping[str, int], length: Length, *, is_urgent: bool) -> Choice:
        """Return each question's best passage, in the order of the questions, then what answers nearly as well.

        `sizes` is how many characters would be quoted of each passage, by ref; one of none is left out. In an urgent
        ticket the passage with what to do at once comes first.
        """
        usable = [passage for passage in self._passages if sizes.get(passage.ref)]
        if not usable:
            return Choice((), tuple(range(len(questions))))
        chosen = self._first_aid(usable) if is_urgent else []
        fits = [{one.ref: self._fit(question, one) for one in usable} for question in questions]
        for question, fit in zip(questions, fits, strict=True):
            best = _best(usable, fit)
            if best not in chosen and self.answers(question, best):
                chosen.append(best)
        chosen = chosen or [max(usable, key=lambda one: self._fit(self._whole, one))]
        for question, fit in zip(questions, fits, strict=True):
            chosen += self._related(question, fit, chosen, usable)
        chosen += self._further(questions, fits, chosen, [one for one in usable if one not in chosen])
        for passage in sorted(usable, key=lambda one: -max(fit[one.ref] for fit in fits)):
            if passage not in chosen and sum(sizes[one.ref] for one in (*chosen, passage)) <= length.budget:
                chosen.append(passage)
        kept = tuple(chosen[: length.topics])
        unanswered = (at for at, one in enumerate(questions) if not any(self._touches(one, each) for each in kept))
        return Choice(kept, tuple(unanswered))

    def _related(
        self, question: str, fit: Mapping[str, float], chosen: Sequence[Passage], usable: Sequence[Passage]
    ) -> list[Passage]:
        """Return the passage that the search found for a question whose words stand nowhere, or for a mere report."""
        if question != self._whole and any(self.answers(question, one) for one in chosen):
            return []
        documents = {passage.doc_id for passage in chosen}
        others = [one for one in usable if one not in chosen and one.doc_id in documents]
        found = [one for one in others if self._score[one.ref] >= FOUND_WELL]
        return [_best(found, fit)] if found else []

    def _further(
        self,
        questions: Sequence[str],
        fits: Sequence[Mapping[str, float]],
        chosen: Sequence[Passage],
        others: Sequence[Passage],
    ) -> list[Passage]:
        """Return the others that answer a question clearly and nearly as well as its best, best first."""
        documents = {passage.doc_id for passage in chosen}
        near: dict[str, float] = {}
        for question, fit in zip(questions, fits, strict=True):
            top = max(fit.values())
            for one in others:
                least = NEAR_BEST_THERE if one.doc_id in documents else NEAR_BEST
                if fit[one.ref] >= least * top and self.answers(question, one):
                    near[one.ref] = max(near.get(one.ref, 0.0), fit[one.ref])
        return sorted((one for one in others if one.ref in near), key=lambda one: -near[one.ref])[:MOST_FURTHER]

    def answers(self, question: str, passage: Passage) -> bool:
        """Whether a passage holds enough of a question's words, and what kind of answer it wants, if any."""
        text = f"{passage.heading}\n{passage.text}"
        if not any(self.share(self._whole, one.text) for one in self._passages):
            return True  # Another language: only the search can tell.
        if wants_kind(question):
            near = max(self.share(question, text), self.share(self._whole, text))
            return near >= CLEAR_SHARE / 2 and has_wanted_kind(question, passage.text)
        return self.share(question, text) >= CLEAR_SHARE

    def _touches(self, question: str, passage: Passage) -> bool:
        """Whether a passage answers a question, or at least holds its kind of answer or enough of its characters."""
        if self.answers(question, passage):
            return True
        if wants_kind(question):
            return has_wanted_kind(question, passage.text)
        text = f"{passage.doc_title}\n{passage.heading}\n{passage.text}"
        return self._letter_share(question, text) >= CLEAR_LETTERS

    def _first_aid(self, usable: Sequence[Passage]) -> list[Passage]:
        """Return the passage that says best what to do at once, if one says more than to call somebody."""
        actions = {one.ref: len({found.lower() for found in _ACTIONS.findall(one.text)}) for one in usable}
        first = max(usable, key=lambda one: self._fit(self._whole, one) + ACTION_WEIGHT * actions[one.ref])
        return [first] if actions[first.ref] >= LEAST_ACTIONS else []

    def _fit(self, question: str, passage: Passage) -> float:
        named = f"{passage.doc_title}\n{passage.heading}"
        words = self._words_fit(question, passage.text, named) + WHOLE_WEIGHT * self._words_fit(
            self._whole, passage.text, named
        )
        named_by = self.share(passage.heading, self._whole)
        lines = [line for line in passage.text.splitlines() if has_wanted_kind(question, line)]
        kind = max((KIND_WEIGHT * self.share(self._whole, line) for line in lines), default=0.0)
        kind += LABEL_WEIGHT * any(label in self._whole for label in labels(passage.text))
        return words + NAMED_BY_WEIGHT * named_by + RANK_WEIGHT * self._standing[passage.ref] + kind

    def _words_fit(self, question: str, text: str, named: str) -> float:
        letters = LETTER_WEIGHT * self._letter_share(question, f"{named}\n{text}")
        return self.share(question, text) + HEADING_WEIGHT * self.share(question, named) + letters

    def _letter_share(self, question: str, text: str) -> float:
        """Return the share of the question's Chinese characters that stand in `text`, weighed by their rarity."""
        asked = set(_HAN.findall(simplified(question)))
        there = set(simplified(text))
        unknown = math.log(1 + len(self._passages))
        total = sum(self._letters.get(letter, unknown) for letter in asked)
        return sum(self._letters.get(letter, 0.0) for letter in asked & there) / total if total else 0.0


def _rarity(texts: Iterable[Sequence[str]]) -> dict[str, float]:
    """Return the weight of each piece, the more the fewer of the texts hold it."""
    sets = [set(text) for text in texts]
    holding = Counter(piece for one in sets for piece in one)
    return {piece: math.log(1 + len(sets) / count) for piece, count in holding.items()}


def _best(passages: Sequence[Passage], fit: Mapping[str, float]) -> Passage:
    return max(passages, key=lambda one: fit[one.ref])


def _distinct(passages: Sequence[Passage]) -> list[Passage]:
    """Leave out passages with a text that a better one has already: pieces of one section answer with the same text."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.text, passage)
    return list(first.values())


def _score(passages: Sequence[Passage]) -> dict[str, float]:
    top = max((passage.fused for passage in passages), default=0.0)
    return {passage.ref: passage.fused / top if top > 0 else 1.0 for passage in passages}


def _standing(passages: Sequence[Passage], score: Mapping[str, float]) -> dict[str, float]:
    """Return each passage's score in 0..1, plus up to 1 for a document of which much was found."""
    documents: dict[UUID, float] = {}
    for passage in passages:
        documents[passage.doc_id] = documents.get(passage.doc_id, 0.0) + score[passage.ref]
    most = max(documents.values(), default=1.0)
    return {passage.ref: score[passage.ref] + documents[passage.doc_id] / most for passage in passages}
