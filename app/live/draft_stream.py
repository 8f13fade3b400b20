"""A draft in the making, shown to whoever has the page open: each frame is the whole text so far, never stored."""

import asyncio
from uuid import UUID

from app.clock import monotonic
from app.live.background import BackgroundPublisher

FRAME_INTERVAL_S = 0.08
"""Shortest time between two frames: an eye sees no more, and each frame repeats the text."""


class DraftStream:
    """Shows the draft of one run, at most every FRAME_INTERVAL_S; what was held back follows by itself."""

    def __init__(self, publisher: BackgroundPublisher, thread_id: UUID, run_id: UUID) -> None:
        self._publisher = publisher
        self._thread_id = thread_id
        self._run_id = run_id
        self._held: str | None = None
        self._sent_at = -FRAME_INTERVAL_S
        self._timer: asyncio.TimerHandle | None = None

    async def show(self, text: str) -> None:
        """Show this text, now or as soon as the interval allows."""
        self._held = text
        if self._timer is None:
            wait = self._sent_at + FRAME_INTERVAL_S - monotonic()
            if wait <= 0:
                self._send()
            else:
                self._timer = asyncio.get_running_loop().call_later(wait, self._send)

    def close(self) -> None:
        """Show what is still held back, and nothing later: call it before the draft itself is announced."""
        if self._timer is not None:
            self._send()

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._held is not None:
            self._publisher.show_draft(self._thread_id, self._run_id, self._held)
            self._sent_at, self._held = monotonic(), None
