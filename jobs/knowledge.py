"""Jobs of the queue `knowledge`."""

from functools import cache
from uuid import UUID

from app.demo.vectors import demo_vectors
from app.knowledge.ingestion import Ingestion
from app.llm.embedding import make_embedder
from jobs.process import container

_THREADS = 2
"""Threads of the local model: long texts gain from a second one, and only one document is worked on at a time."""


def ingest_document(doc_id: str) -> None:
    """Take a document on its way; a second delivery of the job finds it leased or done and stops."""
    _ingestion().run(UUID(doc_id))


@cache
def _ingestion() -> Ingestion:
    parts = container()
    embedder = make_embedder(parts.settings, threads=_THREADS)
    known = demo_vectors(embedder.name) if parts.settings.demo else {}
    return Ingestion(parts.transaction, embedder, known)
