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
    """One connection of a page; `opened` is done when the first bytes of the stream are there."""

    def __init__(self, port: int, path: str, cookie: str, seen: Seen) -> None:
        head = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nAccept: text/event-stream\r\n"
        self._request = head + (f"Last-Event-ID: {seen.last}\r\n" if seen.last is not None else "")
        self._seen = seen
        self._buffer = bytearray()
        self._looked = 0
        self._in_body = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.cut = False

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
        """Say so when it was not us who cut it."""
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("closed before the stream began"))
        elif not self.cut:
            print(f"a stream was lost: {exc}", flush=True)

    def _read_head(self) -> bool:
        head, found, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not found:
            return False
        if b" 200 " not in head.split(b"\r\n")[0]:
            self.opened.set_exception(ConnectionError(head.split(b"\r\n")[0].decode()))
            self.transport.abort()
            return False
        self._buffer, self._in_body = bytearray(rest), True
        return True

    def _take(self, message: bytes) -> None:
        if message.startswith(b":"):
            if not self.opened.done():
                self.opened.set_result(None)
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
        self._streams: dict[int, Stream] = {}

    async def open(self, paths: Sequence[str]) -> float:
        """Open pages; returns the seconds until all streams have begun."""
        first = len(self._paths)
        self._paths += paths
        self._seen += [Seen() for _ in paths]
        return await self._connect(range(first, len(self._paths)))

    async def cut(self, pages: Sequence[int]) -> float:
        """Cut the connections of some pages, as a network does: without a word to the server's application."""
        for page in pages:
            stream = self._streams.pop(page)
            stream.cut = True
            stream.transport.abort()
        return 0.0

    async def resume(self, pages: Sequence[int]) -> float:
        """Let pages come back where they were; returns the seconds until all streams have begun."""
        return await self._connect(pages)

    async def report(self) -> list[Seen]:
        """Return what the pages have seen."""
        return self._seen

    async def _connect(self, pages: Sequence[int]) -> float:
        began, free = monotonic(), asyncio.Semaphore(OPENING_AT_A_TIME)

        async def connect(page: int) -> None:
            async with free:
                seen, path = self._seen[page], self._paths[page]
                _, stream = await asyncio.get_running_loop().create_connection(
                    lambda: Stream(self._port, path, self._cookie, seen), "127.0.0.1", self._port
                )
                self._streams[page] = stream
                await stream.opened

        await asyncio.gather(*map(connect, pages))
        return monotonic() - began


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
