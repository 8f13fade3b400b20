"""The embedder process of this machine serves the local model on a Unix socket, so that web processes need not compute.

One request and one answer a connection. A frame is its length (4 bytes, big-endian) and its bytes; a request is one
frame of JSON, an answer a frame of JSON and a frame of little-endian float32. Any number of clients at a time.
"""

import hashlib
import logging
import os
import socket
import socketserver
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from app.clock import monotonic
from app.errors import Unavailable
from app.llm.embedding import LOCAL_DIMENSIONS, LOCAL_NAME, ApiEmbedder, Embedder, Vector
from app.settings import Settings

log = logging.getLogger(__name__)

QUERY_LIMIT_S = 1.5
"""How long a page waits for a vector; beyond it the search goes by keywords alone."""

_FRAME_LIMIT = 1 << 20
_CLIENT_LIMIT_S = 10.0
_PATH_LIMIT = 100
"""Bytes of a socket's path that every Unix takes (the kernels' limits are 104 to 108)."""


class EmbedRequest(BaseModel):
    """What a client asks."""

    kind: Literal["query", "passage"]
    texts: list[str] = Field(min_length=1, max_length=64)


class EmbedAnswer(BaseModel):
    """What it is told before the vectors."""

    name: str
    dimensions: int
    count: int


def socket_path(settings: Settings) -> Path:
    """Return where the embedder process listens: in VAR_DIR, or in a private folder where that path is too long."""
    path = settings.var_dir.resolve() / "embedder.sock"
    if len(os.fsencode(path)) <= _PATH_LIMIT:
        return path
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"draftdesk-{os.getuid()}-{digest}" / "embedder.sock"


class SocketEmbedder:
    """Asks the embedder process; cooperates under gevent. Raises Unavailable beyond `limit_s`, or when none listens."""

    name = LOCAL_NAME
    dimensions = LOCAL_DIMENSIONS

    def __init__(self, path: Path, *, limit_s: float = QUERY_LIMIT_S) -> None:
        self._path = path
        self._limit_s = limit_s

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of what somebody asks, in order."""
        return self._ask(EmbedRequest(kind="query", texts=list(texts)))

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts to be found, in order."""
        return self._ask(EmbedRequest(kind="passage", texts=list(texts)))

    def _ask(self, request: EmbedRequest) -> list[Vector]:
        deadline = monotonic() + self._limit_s
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self._limit_s)
                connection.connect(str(self._path))
                _send_frame(connection, request.model_dump_json().encode())
                answer = EmbedAnswer.model_validate_json(_read_frame(connection, deadline))
                body = _read_frame(connection, deadline)
        except (OSError, ValidationError) as error:
            raise Unavailable("The embedder process does not answer.") from error
        if answer.name != self.name or len(body) != answer.count * self.dimensions * 4:
            raise Unavailable("The embedder process runs another model; restart it.")
        return list(np.frombuffer(body, dtype="<f4").reshape(answer.count, self.dimensions).astype(np.float32))


def make_query_embedder(settings: Settings) -> Embedder:
    """Return the embedder for a page's queries: never computes in this process, and gives up soon."""
    if settings.embedding_base_url:
        return ApiEmbedder(settings, timeout_s=QUERY_LIMIT_S, retries=0)
    return SocketEmbedder(socket_path(settings))


class EmbedderServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves `embedder` on `path`, readable by this user only; takes over the path of a server that has died."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: Path, embedder: Embedder) -> None:
        self.embedder = embedder
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.parent.stat().st_uid != os.getuid():
            raise PermissionError(f"{path.parent} belongs to another user")
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Exchange)
        path.chmod(0o600)

    def server_close(self) -> None:
        """Stop listening and take the path away."""
        super().server_close()
        self._path.unlink(missing_ok=True)


class _Exchange(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        connection = cast(socket.socket, self.request)
        embedder = cast(EmbedderServer, self.server).embedder
        connection.settimeout(_CLIENT_LIMIT_S)
        try:
            request = EmbedRequest.model_validate_json(_read_frame(connection, monotonic() + _CLIENT_LIMIT_S))
            vectors = _embed(embedder, request)
            answer = EmbedAnswer(name=embedder.name, dimensions=embedder.dimensions, count=len(vectors))
            _send_frame(connection, answer.model_dump_json().encode())
            _send_frame(connection, np.asarray(vectors, dtype="<f4").tobytes())
        except ValidationError:
            log.warning("a client sent a request that can't be read")
        except OSError:
            log.debug("a client left before its answer")


def _embed(embedder: Embedder, request: EmbedRequest) -> list[Vector]:
    if request.kind == "query":
        return embedder.embed_queries(request.texts)
    return embedder.embed_passages(request.texts)


def _send_frame(connection: socket.socket, body: bytes) -> None:
    connection.sendall(struct.pack(">I", len(body)) + body)


def _read_frame(connection: socket.socket, deadline: float) -> bytes:
    (length,) = struct.unpack(">I", _read_exactly(connection, 4, deadline))
    if length > _FRAME_LIMIT:
        raise ConnectionError("frame too long")
    return _read_exactly(connection, length, deadline)


def _read_exactly(connection: socket.socket, count: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < count:
        left = deadline - monotonic()
        if left <= 0:
            raise TimeoutError("no whole frame in time")
        connection.settimeout(left)
        part = connection.recv(count - len(received))
        if not part:
            raise ConnectionError("closed in the middle of a frame")
        received += part
    return bytes(received)
