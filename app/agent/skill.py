"""What a skill is, and how it may end.

A skill returns its result, or raises `SkillFailed` (the model may react), or `Escalation` (a person must take over).
Anything else is a system error and fails the run.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import ClassVar, Protocol, TypeVar

from pydantic import BaseModel

from app.agent.values import Observation

P = TypeVar("P", bound=BaseModel, contravariant=True)
R = TypeVar("R", bound=BaseModel)
Facts = Mapping[str, str | int | float | bool | list[str] | None]
"""Small facts about a result, as JSON values: what the planner is told, and what the page makes a sentence of."""


class Level(IntEnum):
    """What a skill may do: read, draft, send (needs approval), irreversible (needs double approval)."""

    READ = 1
    DRAFT = 2
    SEND = 3
    IRREVERSIBLE = 4


class Phase(StrEnum):
    """Where in a run a skill is on offer."""

    CLASSIFY = "classify"
    SEARCH = "search"
    DRAFT = "draft"


class SkillFailed(Exception):
    """The skill could not do it; `code` and `message` go back to the planner as data.

    `message` is English for the planner only: pages say in words of their own what a code means.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Escalation(Exception):
    """The run must go to a person; `reason` is an English msgid for the page."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One paid call. Tokens are counts, `cost_micro` millionths of the currency, times milliseconds."""

    task: str
    provider: str
    model: str
    attempt: int
    tokens_in: int
    tokens_out: int
    cost_micro: int
    latency_ms: int
    ttft_ms: int | None
    finish_reason: str
    prompt_version: str
    error: str | None = None


@dataclass(slots=True)
class CallLog:
    """The calls paid within one step, kept whatever becomes of it; `take` empties it."""

    calls: list[ModelCall] = field(default_factory=list)

    def add(self, call: ModelCall) -> None:
        """Note one call, finished, failed or cut off."""
        self.calls.append(call)

    def take(self) -> list[ModelCall]:
        """Return the calls noted since the last take."""
        taken, self.calls = self.calls, []
        return taken


@dataclass(frozen=True, slots=True)
class SkillContext:
    """What a skill is given beside its parameters. `show_draft` takes the whole text written so far."""

    observation: Observation
    calls: CallLog
    show_draft: Callable[[str], Awaitable[None]]


class Skill(Protocol[P, R]):
    """One thing that the agent can do. `name` is `<verb>_<noun>`; the model reads `description` and `Params`.

    `retry_safe` is True when it may be begun once more after its worker died in the middle of it: a second beginning
    repeats no effect that others can see. `keeps_failing` is an English msgid: why a run goes to a person after this
    skill was called or answered in a form that can't be used, time and again.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    level: ClassVar[Level]
    phase: ClassVar[Phase]
    retry_safe: ClassVar[bool]
    keeps_failing: ClassVar[str]
    Params: type[BaseModel]

    async def run(self, params: P, context: SkillContext) -> R:
        """Do it. Raises SkillFailed or Escalation."""

    def absorb(self, observation: Observation, result: R) -> Observation:
        """Return the observation with this result in it."""

    def summarize(self, result: R) -> Facts:
        """Return the facts about the result, never knowledge text."""
