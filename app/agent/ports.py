"""What the runtime asks of the outside. Each port is implemented above and wired in `app/agent_parts.py`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from app.agent.skill import CallLog
from app.agent.steps import Outcome
from app.agent.values import Classification, Draft, Observation, SearchResult, TicketFacts
from app.msgids import msgid

NO_MODEL = msgid("No model answers at the moment.")
PLANNING = "plan"
"""Under this name a planner that fails is on record, as the step that it did not choose."""


@dataclass(frozen=True, slots=True)
class SkillOffer:
    """A skill as the planner sees it: `parameters` is a JSON schema as text."""

    name: str
    description: str
    parameters: str


@dataclass(frozen=True, slots=True)
class CallSkill:
    """The planner wants this skill with these arguments (JSON text, not yet validated)."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The planner sees nothing more to do; `reason` is data for the log."""

    reason: str


Plan = CallSkill | Finish


class Planner(Protocol):
    """Chooses the next skill."""

    async def plan(self, observation: Observation, offers: Sequence[SkillOffer], calls: CallLog) -> Plan:
        """Return the next move.

        Raises ModelUnavailable when a model is needed and none answers, SkillFailed on an answer that can't be used.
        """


class Classifier(Protocol):
    """Gives a ticket its class."""

    async def classify(self, ticket: TicketFacts, calls: CallLog) -> Classification:
        """Return the class. Raises SkillFailed on output that can't be read."""


class Retriever(Protocol):
    """Finds passages of the knowledge base."""

    async def search(self, query: str) -> SearchResult:
        """Return the passages that fit `query`, best first, with a verdict on whether they suffice."""


class Drafter(Protocol):
    """Writes a reply from what was found and nothing else."""

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        """Return the draft; `show` is called with the whole text so far as it grows.

        Raises SkillFailed on output that can't be read, Escalation when the sources do not answer.
        """


class ModelUnavailable(Exception):
    """No model answers: the run fails and can be retried. `message` is an English msgid that is safe to show."""

    def __init__(self, message: str = NO_MODEL) -> None:
        super().__init__(message)
        self.message = message


class ModelTimedOut(ModelUnavailable):
    """The model did not answer within its limit, `limit_s` seconds."""

    def __init__(self, message: str, limit_s: float) -> None:
        super().__init__(message)
        self.limit_s = limit_s


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a finished step has made; `facts` is the summary of it as JSON text."""

    skill: str
    value: BaseModel
    facts: str


@dataclass(frozen=True, slots=True)
class StepError:
    """Why a step failed: a code, and plain words for the planner and the record."""

    code: str
    message: str


class RunLost(Exception):
    """The run is no longer ours: it was cancelled, superseded or taken over. Nothing was written; stop silently."""


class Journal(Protocol):
    """Records one run. Each method is one guarded write and raises RunLost when the guard refuses it.

    `calls` are the model calls paid since the last write. Those of a refused write are kept too, by whoever drives the
    run to its end.
    """

    async def step_started(self, number: int, skill: str, arguments: str, calls: CallLog) -> None:
        """Record that step `number` begins, before it has any effect; `arguments` is JSON text."""

    async def step_finished(self, number: int, result: StepResult, outcome: Outcome, calls: CallLog) -> None:
        """Record the result, what the run knows now, and where the outcome moves the run."""

    async def step_failed(self, number: int, error: StepError, outcome: Outcome, calls: CallLog) -> None:
        """Record the failure, what the run knows now, and where the outcome moves the run."""

    async def ended(self, outcome: Outcome, calls: CallLog) -> None:
        """Record an outcome that came between two steps."""
