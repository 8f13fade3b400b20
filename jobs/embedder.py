"""The embedder process: `python -m jobs.embedder`. Serves query vectors to the web processes of this machine."""

import logging
import signal
import threading

from app.llm.embedding import LocalEmbedder
from app.llm.embedding_socket import EmbedderServer, socket_path
from app.logs import configure_logging
from app.settings import Settings

log = logging.getLogger(__name__)


def main() -> None:
    """Serve until SIGTERM or SIGINT; with EMBEDDING_BASE_URL there is nothing to serve, and it only waits."""
    configure_logging()
    settings = Settings()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if settings.embedding_base_url:
        log.info("an embedding endpoint is set: the local model is not needed")
        stop.wait()
        return
    with EmbedderServer(socket_path(settings), LocalEmbedder()) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        log.info("embedder listens on %s", socket_path(settings))
        stop.wait()
        server.shutdown()


if __name__ == "__main__":
    main()
