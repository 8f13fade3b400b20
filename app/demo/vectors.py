"""Vectors of the demo documents, made beforehand: `python -m app.demo.vectors` writes them anew after a change.

A document whose text has changed since is embedded as any other; a stale file only costs time.
"""

from pathlib import Path

from app.knowledge.chunking import chunk, content_hash, indexed_text
from app.knowledge.parsers import parse
from app.knowledge.vectors import KnownVectors, load_vectors, save_vectors
from app.llm.embedding import LocalEmbedder

_FOLDER = Path(__file__).parent
_FILE = _FOLDER / "embeddings.npz"


def demo_vectors(embedder: str) -> KnownVectors:
    """Return the vectors by this embedder; none where they were made by another."""
    return load_vectors(_FILE, embedder)


def main() -> None:
    """Embed every chunk of the demo documents with the local model and write the file."""
    texts = [
        indexed_text(parsed.title, piece.heading, piece.text)
        for path in sorted((_FOLDER / "documents").iterdir())
        for parsed in [parse(path.name, path.read_bytes())]
        for piece in chunk(parsed)
    ]
    embedder = LocalEmbedder(threads=2)
    vectors = embedder.embed_passages(texts)
    save_vectors(_FILE, embedder.name, dict(zip(map(content_hash, texts), vectors, strict=True)))


if __name__ == "__main__":
    main()
