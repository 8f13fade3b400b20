"""Looks after the embedded servers while the processes run, and starts one again that has ended."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app.embedded import EmbeddedServer, ServiceFailed
from dev.services import say

LOOK_EVERY_S = 1.0
COMPLAIN_EVERY_S = 30.0


@contextmanager
def watched(servers: Sequence[EmbeddedServer]) -> Iterator[threading.Thread]:
    """Give a thread that keeps the servers running once it is started; it has ended when the block has."""
    stopping = threading.Event()
    thread = threading.Thread(target=_watch, args=(servers, stopping), daemon=True)
    try:
        yield thread
    finally:
        stopping.set()
        if thread.ident is not None:
            thread.join()


def _watch(servers: Sequence[EmbeddedServer], stopping: threading.Event) -> None:
    complained = dict.fromkeys(servers, -COMPLAIN_EVERY_S)
    while not stopping.wait(LOOK_EVERY_S):
        for server in servers:
            if stopping.is_set() or not server.has_ended():
                continue
            may_complain = time.monotonic() - complained[server] >= COMPLAIN_EVERY_S
            if may_complain:
                complained[server] = time.monotonic()
                say(f"{server.name} has ended; starting it again ...")
            try:
                server.start()
            except (ServiceFailed, OSError) as problem:
                if may_complain:
                    say(f"{problem}; trying again")
            else:
                complained[server] = -COMPLAIN_EVERY_S
                say(f"{server.name} is back.")
