"""Ports of the agent that go wrong."""

from collections.abc import Awaitable, Callable, Sequence

from app.agent.ports import ModelUnavailable, Plan, SkillOffer
from app.agent.skill import CallLog
from app.agent.values import Draft, Observation, SearchResult
from tests.agent.parts import reply


class AbsentModel:
    """A planner whose model does not answer."""

    async def plan(self, observation: Observation, offers: Sequence[SkillOffer], calls: CallLog) -> Plan:
        raise ModelUnavailable


class AbsentDrafter:
    """A drafter whose model does not answer."""

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        raise ModelUnavailable


class BrokenRetriever:
    """A retriever with a bug."""

    async def search(self, query: str) -> SearchResult:
        raise ZeroDivisionError


class NulDrafter:
    """A drafter whose text holds a NUL character, and the escape of one as plain text."""

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        return reply(observation, "a\0b\\u0000c")
