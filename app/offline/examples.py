"""The labelled sentences that the offline classifier votes with, and their vectors.

The vectors of the built-in embedder are computed when an example changes and kept beside the examples:

    python -m app.offline.examples

With any other embedder, or a file that no longer fits, they are computed at first use.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.agent.values import Category, Priority
from app.llm.embedding import Embedder, LocalEmbedder

EXAMPLES_FILE = Path(__file__).with_name("examples.jsonl")
VECTORS_FILE = Path(__file__).with_name("examples.npz")


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence as a customer might write it, with its class."""

    text: str
    category: Category
    priority: Priority


def load_examples() -> tuple[Example, ...]:
    """Return the examples in the order of the file."""
    rows = [json.loads(line) for line in EXAMPLES_FILE.read_text(encoding="utf-8").splitlines()]
    return tuple(Example(row["text"], Category(row["category"]), Priority(row["priority"])) for row in rows)


def example_vectors(examples: tuple[Example, ...], embedder: Embedder) -> NDArray[np.float32]:
    """Return one vector an example, shape (examples, dimensions); from the file if it was made from just these.

    Raises Unavailable when they must be computed and the embedder does not answer.
    """
    if VECTORS_FILE.exists():
        with np.load(VECTORS_FILE) as stored:
            if str(stored["key"]) == _key(examples, embedder.name):
                vectors: NDArray[np.float32] = stored["vectors"].astype(np.float32)
                return vectors
    return np.stack(embedder.embed_queries([example.text for example in examples]))


def rebuild() -> int:
    """Write the vectors of the built-in embedder; return how many."""
    examples, embedder = load_examples(), LocalEmbedder(threads=2)
    vectors = np.stack(embedder.embed_queries([example.text for example in examples])).astype(np.float16)
    np.savez_compressed(VECTORS_FILE, key=np.array(_key(examples, embedder.name)), vectors=vectors)
    return len(vectors)


def _key(examples: tuple[Example, ...], embedder_name: str) -> str:
    texts = "\n".join(example.text for example in examples)
    return f"{embedder_name} {hashlib.sha256(texts.encode()).hexdigest()}"


if __name__ == "__main__":
    rebuild()
