"""A process of open pages for `bench.sse`: each a raw socket with a live stream, so that a thousand of them are cheap.

They ask in HTTP/1.0, as a proxy does, which leaves the answer without chunks. What a page has seen is kept by number,
across a cut and the coming back with Last-Event-ID.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from app.clock import monotonic

OPENING_AT_A_TIME = 100
AGAIN_S = 0.5
"""How long a page waits before it opens a stream again that broke off."""
_ID = re.compile(rb"^id: (\d+)$", re.M)
_REGION_OF_EVERY_EVENT = b'hx-target="#ticket-head"'


@dataclass(slots=True)
class Seen:
    """What one page has got: number and time of each message with news of its ticket, and of the last message."""

    news: list[tuple[int, float]] = field(default_factory=list)
    messages: int = 0
    size: int = 0
    last: int | None = None


class Stream(asyncio.Protocol):
    """One connection of a page; `began` is done at the first bytes of the stream, `ended` when it has ended."""

    def __init__(self, port: int, path: str, cookie: str, seen: Seen) -> None:
        head = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nAccept: text/event-stream\r\n"
        self._request = head + (f"Last-Event-ID: {seen.last}\r\n" if seen.last is not None else "")
        self._seen = seen
        self._buffer = bytearray()
        self._looked = 0
        self._in_body = False
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(f"{self._request}\r\n".encode())

    def data_received(self, data: bytes) -> None:
        """Take every whole message out of what has come."""
        self._seen.size += len(data)
        self._buffer += data
        if not self._in_body and not self._read_head():
            return
        while (end := self._buffer.find(b"\n\n", self._looked)) >= 0:
            self._take(bytes(self._buffer[:end]))
            del self._buffer[: end + 2]
            self._looked = 0
        self._looked = max(0, len(self._buffer) - 1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits for the stream."""
        if not self.began.done():
            self.began.set_exception(exc or ConnectionError("closed before the stream began"))
        if not self.ended.done():
            self.ended.set_result(None)

    def abort(self) -> None:
        """Close the connection without a word."""
        if self.transport is not None:
            self.transport.abort()

    def _read_head(self) -> bool:
        head, found, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not found:
            return False
        if b" 200 " not in head.split(b"\r\n")[0]:
            self.began.set_exception(ConnectionError(head.split(b"\r\n")[0].decode()))
            self.abort()
            return False
        self._buffer, self._in_body = bytearray(rest), True
        return True

    def _take(self, message: bytes) -> None:
        if message.startswith(b":"):
            if not self.began.done():
                self.began.set_result(None)
            return
        self._seen.messages += 1
        number = _ID.search(message[:200])
        if number is None:
            return
        self._seen.last = int(number[1])
        if _REGION_OF_EVERY_EVENT in message:
            self._seen.news.append((self._seen.last, monotonic()))


class _Pages:
    def __init__(self, port: int, cookie: str) -> None:
        self._port = port
        self._cookie = cookie
        self._paths: list[str] = []
        self._seen: list[Seen] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._began: dict[int, asyncio.Event] = {}
        self._free = asyncio.Semaphore(OPENING_AT_A_TIME)
        self._broken = 0

    async def open(self, paths: Sequence[str]) -> float:
        """Open pages; returns the seconds until all streams have begun."""
        first = len(self._paths)
        self._paths += paths
        self._seen += [Seen() for _ in paths]
        return await self.resume(range(first, len(self._paths)))

    async def resume(self, pages: Sequence[int]) -> float:
        """Let pages come back where they were; returns the seconds until all streams have begun."""
        at = monotonic()
        for page in pages:
            self._began[page] = asyncio.Event()
            self._tasks[page] = asyncio.create_task(self._keep(page))
        for page in pages:
            await self._began[page].wait()
        return monotonic() - at

    async def cut(self, pages: Sequence[int]) -> None:
        """Cut the connections of some pages, as a network does: without a word to the server's application."""
        tasks = [self._tasks.pop(page) for page in pages]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def report(self) -> tuple[list[Seen], int]:
        """Return what the pages have seen, and how often a stream was refused or broke off that nobody cut."""
        return self._seen, self._broken

    async def _keep(self, page: int) -> None:
        """Hold a page's stream open, and open it again when it breaks, as the page does."""
        while True:
            stream = Stream(self._port, self._paths[page], self._cookie, self._seen[page])
            try:
                async with self._free:
                    await asyncio.get_running_loop().create_connection(lambda: stream, "127.0.0.1", self._port)  # noqa: B023
                    await stream.began
                self._began[page].set()
                await stream.ended
            except OSError:
                pass
            finally:
                stream.abort()
            self._broken += 1
            await asyncio.sleep(AGAIN_S)


class Viewers:
    """The process of pages, from outside: each call returns when it is done there."""

    def __init__(self, port: int, cookie: str) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, port, cookie), daemon=True)
        self._process.start()

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the pages. Raises RuntimeError with what went wrong there."""
        self._pipe.send((name, arguments))
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise RuntimeError(f"{name} failed: {answer!r}")
        return answer

    def close(self) -> None:
        """End the process and with it all connections."""
        self._process.kill()
        self._process.join()


def _serve(pipe: "Connection[Any, Any]", port: int, cookie: str) -> None:
    asyncio.run(_answer(pipe, _Pages(port, cookie)))


async def _answer(pipe: "Connection[Any, Any]", pages: _Pages) -> None:
    while True:
        name, arguments = await asyncio.to_thread(pipe.recv)
        try:
            pipe.send(await getattr(pages, name)(*arguments))
        except Exception as error:
            pipe.send(error)
