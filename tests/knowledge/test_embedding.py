"""Embedders: the local model, an endpoint over real HTTP, and the embedder process with its socket."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from app.errors import Unavailable
from app.llm.embedding import ApiEmbedder, EmbeddingRefused, LocalEmbedder, embedder_name, make_embedder
from app.llm.embedding_socket import EmbedderServer, SocketEmbedder, make_query_embedder, socket_path
from app.settings import ROOT, Settings
from tests.support.model_server import ModelServer


def test_local_vectors_have_length_one_and_are_the_same_alone_and_in_a_batch(local_model: LocalEmbedder) -> None:
    texts = ["退款多久到账", "How long does a refund take?", "x\0y"]
    batch = local_model.embed_passages(texts)

    assert all(vector.shape == (local_model.dimensions,) for vector in batch)
    assert np.allclose([np.linalg.norm(vector) for vector in batch], 1, atol=1e-5)
    assert np.allclose(batch[0], local_model.embed_passages(texts[:1])[0], atol=1e-5)
    assert not np.allclose(batch[0], local_model.embed_queries([texts[0]])[0])


def test_meaning_is_nearer_than_other_words(local_model: LocalEmbedder) -> None:
    query = local_model.embed_queries(["钱什么时候退给我"])[0]
    near, far = local_model.embed_passages(["退款会在3个工作日内到账。", "新疆地区7至10天送达。"])

    assert float(query @ near) > float(query @ far)


@pytest.fixture
def socket_file(var_dir: Path) -> Iterator[Path]:
    path = var_dir / "e.sock"
    yield path
    path.unlink(missing_ok=True)


def test_the_process_serves_several_clients_and_leaves_no_socket(settings: Settings, var_dir: Path) -> None:
    own = settings.model_copy(update={"var_dir": var_dir / "own"})
    path = socket_path(own)
    environment = {"VAR_DIR": str(own.var_dir), "DEMO": "1", "PATH": ""}
    process = subprocess.Popen([sys.executable, "-m", "jobs.embedder"], cwd=ROOT, env=environment)
    try:
        wait_for_listener(path)
        client = make_query_embedder(own)
        vectors = client.embed_queries(["退款", "发票"])
        model = LocalEmbedder()
        assert client.name == model.name == embedder_name(own)
        assert np.allclose(vectors[0], model.embed_queries(["退款"])[0], atol=1e-5)
        assert np.allclose(vectors[1], model.embed_queries(["发票"])[0], atol=1e-5)
        assert path.stat().st_mode & 0o077 == 0
    finally:
        process.terminate()
    assert process.wait(10) == 0
    assert not path.exists()


def test_no_process_means_unavailable(socket_file: Path) -> None:
    with pytest.raises(Unavailable):
        SocketEmbedder(socket_file).embed_queries(["退款"])[0]


def test_a_process_that_hangs_means_unavailable_soon(socket_file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_file))
        listener.listen()
        started = time.monotonic()
        with pytest.raises(Unavailable):
            SocketEmbedder(socket_file, limit_s=0.2).embed_queries(["退款"])[0]
        assert time.monotonic() - started < 2


@pytest.fixture
def serving(socket_file: Path, local_model: LocalEmbedder) -> Iterator[None]:
    with EmbedderServer(socket_file, local_model) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize("nonsense", [b"\xff\xff\xff\xffgarbage", b"\0\0\0\x02{}", b"\0\0"])
def test_a_client_that_sends_nonsense_harms_nobody(socket_file: Path, nonsense: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client, suppress(ConnectionResetError):
        client.connect(str(socket_file))
        client.sendall(nonsense)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(10) == b""

    assert SocketEmbedder(socket_file, limit_s=10).embed_queries(["退款"])[0].shape == (384,)


def test_a_long_path_gets_a_private_folder_instead(settings: Settings, tmp_path: Path) -> None:
    deep = settings.model_copy(update={"var_dir": tmp_path / ("x" * 120)})

    assert len(str(socket_path(deep))) <= 100
    assert socket_path(deep).parent != socket_path(settings).parent


@pytest.fixture
def api_settings(settings: Settings, stub_llm: ModelServer) -> Settings:
    return settings.model_copy(
        update={"embedding_base_url": stub_llm.base_url, "embedding_model": "stub", "embedding_dimensions": 64}
    )


def test_an_endpoint_is_asked_in_batches_and_keeps_the_order(api_settings: Settings) -> None:
    embedder = make_embedder(api_settings)
    texts = [f"第{number}个文本" for number in range(23)]

    vectors = embedder.embed_passages(texts)

    assert isinstance(embedder, ApiEmbedder)
    assert embedder.name == "stub/64"
    assert [vector.shape for vector in vectors] == [(64,)] * 23
    assert np.allclose(vectors[22], embedder.embed_queries([texts[22]])[0], atol=1e-5)


def test_an_endpoint_in_trouble_is_unavailable_and_one_that_refuses_says_so(api_settings: Settings) -> None:
    down = api_settings.model_copy(update={"embedding_model": "stub;status=503"})
    refusing = api_settings.model_copy(update={"embedding_model": "stub;status=401"})

    with pytest.raises(Unavailable):
        ApiEmbedder(down, retries=0).embed_queries(["退款"])[0]
    with pytest.raises(EmbeddingRefused):
        ApiEmbedder(refusing, retries=0).embed_queries(["退款"])[0]


def wait_for_listener(path: Path) -> None:
    """Wait until a server listens on `path`."""
    for _ in range(400):
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("nobody listens within 20 seconds")
