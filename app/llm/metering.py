"""Measures one call to a model, so that what was paid is on record whatever becomes of it."""

from dataclasses import dataclass, field

from app import clock
from app.agent.skill import ModelCall
from app.llm.replies import Usage

FAILED = "error"
"""The finish reason of a call that did not come to its end."""


@dataclass(slots=True)
class Meter:
    """Runs from the start of one attempt; `call` is what goes on record. Until told otherwise the call has failed."""

    task: str
    provider: str
    model: str
    attempt: int
    prompt_version: str
    prompt: str
    answer: str = ""
    usage: Usage | None = None
    finish_reason: str = FAILED
    error: str | None = None
    _started: float = field(default_factory=clock.monotonic)
    _first: float | None = None

    def see(self, piece: str) -> None:
        """Note a piece of the answer; the first one stops the clock of the time to first token."""
        if self._first is None:
            self._first = clock.monotonic()
        self.answer += piece

    def end(self, finish_reason: str, error: str | None = None) -> None:
        """Note that the call was cut off or failed; `error` is a code of `failures.py`."""
        self.finish_reason, self.error = finish_reason, error

    def call(self) -> ModelCall:
        """Return the record. Tokens are the provider's, or our estimate where it gave none; unpriced calls cost 0."""
        tokens_in, tokens_out = self._tokens()
        return ModelCall(
            task=self.task,
            provider=self.provider,
            model=self.model,
            attempt=self.attempt,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost_micro=0,
            latency_ms=_milliseconds(clock.monotonic() - self._started),
            ttft_ms=None if self._first is None else _milliseconds(self._first - self._started),
            finish_reason=self.finish_reason,
            prompt_version=self.prompt_version,
            error=self.error,
        )

    def _tokens(self) -> tuple[int, int]:
        if self.usage is not None:
            return self.usage.prompt_tokens or 0, self.usage.completion_tokens or 0
        if self.error == "unreachable" or (self.error or "").startswith("http_"):
            return 0, 0  # refused before the model read a word
        return estimate_tokens(self.prompt), estimate_tokens(self.answer)


def estimate_tokens(text: str) -> int:
    """Return a rough count: three tokens for four characters beyond ASCII, one for four within."""
    wide = sum(1 for char in text if ord(char) > 127)
    return (3 * wide + (len(text) - wide) + 3) // 4


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
