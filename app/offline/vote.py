"""Examples vote on a text: how like it each is, and what their labels say together (kernel ridge regression). Pure.

Ridge regression instead of plain nearest neighbours, since examples that say the same must not outvote those that stand
alone; its leave-one-out results come for free and calibrate the confidence.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.offline.words import bag

Label = TypeVar("Label")
Numbers = NDArray[np.float64]

WORDING_WEIGHT = 0.5
"""What the same words count beside the same meaning."""

SHARPNESS = 2.0
"""How much faster than the cosine the likeness of meaning falls off."""

RIDGE = 1.0
"""How much a single example is distrusted."""

TEMPERATURES = (0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.3, 0.5)


class Likeness:
    """How like each of some examples a text is. `vectors` (examples, dimensions) may be None: wording alone then."""

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32] | None) -> None:
        bags = [bag(text) for text in texts]
        in_how_many = Counter(piece for one in bags for piece in one)
        self._column = {piece: number for number, piece in enumerate(in_how_many)}
        self._rarity = np.array([math.log(len(bags) / count) + 1 for count in in_how_many.values()])
        self._words = np.stack([self._row(one) for one in bags])
        self._centre = np.zeros(1) if vectors is None else vectors.mean(axis=0, dtype=np.float64)
        self._meaning = None if vectors is None else self._centred(vectors.astype(np.float64))

    def among(self) -> Numbers:
        """Return the examples against each other, shape (examples, examples)."""
        return self._joined(self._words, self._meaning)

    def of(self, text: str, vector: NDArray[np.float32] | None) -> Numbers:
        """Return `text` against each example, shape (examples,). `vector` is needed if there are vectors."""
        meaning = None if vector is None else self._centred(vector[np.newaxis].astype(np.float64))
        joined: Numbers = self._joined(self._row(bag(text))[np.newaxis], meaning)[0]
        return joined

    def _joined(self, words: Numbers, meaning: Numbers | None) -> Numbers:
        wording: Numbers = words @ self._words.T
        if meaning is None or self._meaning is None:
            return wording
        joined: Numbers = np.exp(SHARPNESS * (meaning @ self._meaning.T - 1)) + WORDING_WEIGHT * wording
        return joined

    def _row(self, counts: Counter[str]) -> Numbers:
        row = np.zeros(len(self._column))
        for piece, count in counts.items():
            if (column := self._column.get(piece)) is not None:
                row[column] = (1 + math.log(count)) * self._rarity[column]
        length = np.linalg.norm(row)
        return row / length if length else row

    def _centred(self, vectors: Numbers) -> Numbers:
        moved = vectors - self._centre
        centred: Numbers = moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-9)
        return centred


@dataclass(frozen=True, slots=True)
class Vote(Generic[Label]):
    """What the examples say: a score a label (about -1..1), and a probability a label (they add up to 1)."""

    scores: Mapping[Label, float]
    probabilities: Mapping[Label, float]


class Voter(Generic[Label]):
    """Learns labels from examples. `among` is the examples' likeness to each other, `labels` one label an example."""

    def __init__(self, labels: Sequence[Label], among: Numbers) -> None:
        self._names = list(dict.fromkeys(labels))
        truth = np.array([self._names.index(label) for label in labels])
        wanted = np.where(np.arange(len(self._names)) == truth[:, np.newaxis], 1.0, -1.0)
        wanted -= wanted.mean(axis=0)
        inverse = np.linalg.inv(among + RIDGE * np.eye(len(among)))
        self._weights = inverse @ wanted
        fitted = among @ inverse
        leverage = np.diag(fitted)[:, np.newaxis]
        left_out = (fitted @ wanted - leverage * wanted) / (1 - leverage)
        self._temperature = min(TEMPERATURES, key=lambda t: _surprise(left_out, truth, t))

    def vote(self, likeness: Numbers) -> Vote[Label]:
        """Return what the examples say of a text that is `likeness` like each of them."""
        scores = likeness @ self._weights
        chances = _softmax(scores[np.newaxis], self._temperature)[0]
        return Vote(
            dict(zip(self._names, map(float, scores), strict=True)),
            dict(zip(self._names, map(float, chances), strict=True)),
        )


def _softmax(scores: Numbers, temperature: float) -> Numbers:
    powers = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
    chances: Numbers = powers / powers.sum(axis=1, keepdims=True)
    return chances


def _surprise(scores: Numbers, truth: NDArray[np.int_], temperature: float) -> float:
    chances = _softmax(scores, temperature)[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(chances, 1e-12)).mean())
