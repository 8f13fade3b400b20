"""The agent of the harness's workers: hand-written ports, or the product's own over the stub model server."""

import asyncio
from collections.abc import Awaitable, Callable

from app.agent.loop import Agent as Loop
from app.agent.ports import Planner
from app.agent.rule_planner import RulePlanner
from app.agent.skill import CallLog, Escalation, SkillFailed
from app.agent.values import Classification, Draft, Observation, SearchResult, Sufficiency, TicketFacts
from app.agent_parts import AgentParts
from app.guard.evidence import cite_sentences
from app.llm.classifier import ModelClassifier
from app.llm.client import ChatClient
from app.llm.drafter import ModelDrafter
from app.llm.planner import ModelPlanner
from app.settings import Settings
from app.skills import make_skills
from tests.agent.parts import DRAFT_TEXT, PAID, FixedClassifier, found, reply
from tests.faults.points import Points
from tests.faults.script import Agent


class StagedPorts:
    """Classifier, retriever and drafter in one: each call takes a moment, is paid for, and passes its points."""

    def __init__(self, script: Agent, points: Points) -> None:
        self._script = script
        self._points = points
        self._classified = 0
        self._searched = 0

    async def classify(self, ticket: TicketFacts, calls: CallLog) -> Classification:
        """Give the class after as many failures as the script says."""
        calls.add(PAID)
        await self._pass("classify_ticket")
        self._classified += 1
        if self._classified <= self._script.classify_failures:
            raise SkillFailed("bad_output", "The answer was no JSON.")
        return await FixedClassifier().classify(ticket, calls)

    async def search(self, query: str) -> SearchResult:
        """Find enough after as many searches in vain as the script says."""
        await self._pass("search_knowledge")
        self._searched += 1
        enough = self._searched > self._script.insufficient
        return found(Sufficiency.SUFFICIENT if enough else Sufficiency.INSUFFICIENT, query)

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        """Write the draft, or refuse to."""
        calls.add(PAID)
        await show(DRAFT_TEXT[:5])
        await self._pass("draft_reply")
        if self._script.refuses:
            raise Escalation("The sources do not answer this.")
        return reply(observation)

    async def _pass(self, skill: str) -> None:
        await self._points.passing_skill("before", skill)
        await asyncio.sleep(self._script.delay_ms / 1000)
        await self._points.passing_skill("after", skill)


def build_agent(script: Agent, points: Points, settings: Settings) -> AgentParts:
    """Wire the agent of a worker process."""
    staged = StagedPorts(script, points)
    if not script.model:
        return AgentParts(Loop({"rule": RulePlanner()}, make_skills(staged, staged, staged)), _nothing, _nothing_later)
    client = ChatClient(settings)
    skills = make_skills(ModelClassifier(client), staged, ModelDrafter(client, cite_sentences))
    planners: dict[str, Planner] = {"rule": RulePlanner(), "model": ModelPlanner(client)}
    return AgentParts(Loop(planners, skills), _nothing, client.close)


def _nothing() -> None:
    """Warm nothing up."""


async def _nothing_later() -> None:
    """Close nothing."""
