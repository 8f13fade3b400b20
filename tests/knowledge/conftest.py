"""What knowledge tests share: one local embedder, and documents taken the whole way."""

from collections.abc import Callable, Sequence
from typing import ClassVar
from uuid import UUID

import pytest

from app.bootstrap import Container
from app.knowledge.ingestion import Ingestion
from app.knowledge.retrieval import KnowledgeSearch
from app.knowledge.service import add_document
from app.llm.embedding import LocalEmbedder, Vector
from tests.support.model_server import model_server, stub_llm

__all__ = ["model_server", "stub_llm"]

AddText = Callable[..., UUID]


class CountingEmbedder:
    """The local embedder, with what it was asked to embed; computes each text once for all tests, for that is slow."""

    _vectors: ClassVar[dict[tuple[str, str], Vector]] = {}

    def __init__(self, model: LocalEmbedder) -> None:
        self._model = model
        self.name, self.dimensions = model.name, model.dimensions
        self.passages: list[str] = []
        self.queries: list[tuple[str, ...]] = []

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        self.queries.append(tuple(texts))
        return [self._vector("query", text, self._model.embed_queries) for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        self.passages += texts
        return [self._vector("passage", text, self._model.embed_passages) for text in texts]

    def _vector(self, kind: str, text: str, embed: Callable[[Sequence[str]], list[Vector]]) -> Vector:
        if (kind, text) not in self._vectors:
            self._vectors[kind, text] = embed([text])[0]
        return self._vectors[kind, text]


@pytest.fixture(scope="session")
def local_model() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture
def embedder(local_model: LocalEmbedder) -> CountingEmbedder:
    return CountingEmbedder(local_model)


@pytest.fixture
def ingestion(container: Container, embedder: CountingEmbedder) -> Ingestion:
    return Ingestion(container.transaction, embedder)


@pytest.fixture
def upload(container: Container) -> AddText:
    """Take a file in without working on it."""

    def take(name: str, content: str | bytes) -> UUID:
        data = content.encode() if isinstance(content, str) else content
        with container.transaction() as session:
            return add_document(session, name=name, content=data, staff_id=None)

    return take


@pytest.fixture
def publish(upload: AddText, ingestion: Ingestion) -> AddText:
    """Take a file in and work on it until it is active, or has failed."""

    def whole_way(name: str, content: str | bytes) -> UUID:
        doc_id = upload(name, content)
        ingestion.run(doc_id)
        return doc_id

    return whole_way


@pytest.fixture
def search(container: Container, embedder: CountingEmbedder) -> KnowledgeSearch:
    return KnowledgeSearch(container.sessions, embedder, container.settings)
