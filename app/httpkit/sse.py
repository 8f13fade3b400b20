"""Server-sent events: the frame, the headers that keep proxies from holding it back, and a clean end."""

from collections.abc import Iterable, Iterator

from flask import Response, stream_with_context

HEARTBEAT = ": still here\n\n"
"""A comment: browsers skip it, and writing it finds out that a page has gone."""
RECONNECT_MS = 500


def frame(data: str, *, event_id: int | None = None, event: str | None = None, retry_ms: int | None = None) -> str:
    """Return one message. Every line of `data` gets its own `data:`, whatever its line ends were."""
    lines = [f"id: {event_id}"] if event_id is not None else []
    if event is not None:
        lines.append(f"event: {event}")
    if retry_ms is not None:
        lines.append(f"retry: {retry_ms}")
    # Not splitlines(): it also breaks at characters (U+2028, form feed) that are text to a browser.
    text = data.replace("\r\n", "\n").replace("\r", "\n")
    lines += [f"data: {line}" for line in text.split("\n")]
    return "\n".join(lines) + "\n\n"


def event_stream(frames: Iterable[str]) -> Response:
    """Return a response that sends `frames` as they come; a page that goes away closes the iterator."""
    response = Response(stream_with_context(_started(frames)), mimetype="text/event-stream")
    response.headers["Cache-Control"] = "no-cache, no-transform"
    response.headers["X-Accel-Buffering"] = "no"
    return response


def last_event_id(header: str | None, fallback: str | None) -> int:
    """Return the number that a page has seen last: `Last-Event-ID`, else the one it was rendered at, else 0."""
    for text in (header, fallback):
        if text and text.isascii() and text.isdigit() and len(text) < 19:
            return int(text)
    return 0


def _started(frames: Iterable[str]) -> Iterator[str]:
    yield HEARTBEAT  # the headers leave at once, and the page knows that it is connected
    yield from frames
