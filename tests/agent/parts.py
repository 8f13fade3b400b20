"""Hand-written ports for runs without a model: what they answer is said by the test, what they were asked is kept."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from app.agent.ports import CallSkill, Finish, Plan, SkillOffer, StepError, StepResult
from app.agent.skill import CallLog, Escalation, ModelCall, SkillFailed
from app.agent.steps import Outcome
from app.agent.values import (
    Category,
    Citation,
    Classification,
    Draft,
    Observation,
    Passage,
    Priority,
    SearchResult,
    Sentence,
    Sufficiency,
    TicketFacts,
    Verdict,
)
from app.ids import new_id

DRAFT_TEXT = "您好，退款在审核通过后三到五个工作日内原路退回。"
PAID = ModelCall("plan", "stub", "stub-1", 1, 10, 5, 7, 3, None, "stop", "plan-1")


def ticket(**changes: object) -> TicketFacts:
    """A ticket."""
    facts = {
        "ticket_id": new_id(),
        "number": 1001,
        "channel": "web",
        "subject": "退款多久到账",
        "content": "上周申请的退款还没有到。",
        "customer_name": "陈雨桐",
    }
    return TicketFacts.model_validate({**facts, **changes})


def found(outcome: Sufficiency = Sufficiency.SUFFICIENT, query: str = "退款") -> SearchResult:
    """What a search found: one passage."""
    passage = Passage(
        ref="kb-1",
        chunk_id=new_id(),
        doc_id=new_id(),
        doc_version=1,
        doc_title="退款时效",
        heading="到账时间",
        text="退款在审核通过后三到五个工作日内原路退回。",
        vector_score=0.8,
        vector_rank=1,
        keyword_score=3.2,
        keyword_rank=1,
        fused=0.9,
    )
    return SearchResult(
        query=query, passages=(passage,), verdict=Verdict(outcome=outcome, probability=0.5, reason="as the test says")
    )


def reply(observation: Observation, text: str = DRAFT_TEXT) -> Draft:
    """A draft that cites what was found."""
    passages = observation.search.passages if observation.search else ()
    citations = tuple(
        Citation(
            ref=passage.ref,
            chunk_id=passage.chunk_id,
            doc_id=passage.doc_id,
            doc_version=passage.doc_version,
            doc_title=passage.doc_title,
            heading=passage.heading,
            text=passage.text,
            digest="0" * 64,
        )
        for passage in passages
    )
    refs = tuple(citation.ref for citation in citations)
    return Draft(
        text=text, sentences=(Sentence(text=text, refs=refs),), citations=citations, confidence=0.8, origin="model"
    )


@dataclass
class FixedClassifier:
    """Answers the same class, after as many failures as it is told."""

    failures: int = 0
    asked: int = 0

    async def classify(self, ticket: TicketFacts, calls: CallLog) -> Classification:
        self.asked += 1
        if self.asked <= self.failures:
            raise SkillFailed("bad_output", "The answer was no JSON.")
        return Classification(priority=Priority.URGENT, category=Category.REFUND, confidence=0.91, reasoning="急")


@dataclass
class FixedRetriever:
    """Answers the outcomes in turn, the last one for ever; keeps the queries."""

    outcomes: Sequence[Sufficiency] = (Sufficiency.SUFFICIENT,)
    queries: list[str] = field(default_factory=list)

    async def search(self, query: str) -> SearchResult:
        self.queries.append(query)
        return found(self.outcomes[min(len(self.queries), len(self.outcomes)) - 1], query)


@dataclass
class FixedDrafter:
    """Writes a text piece by piece; waits for `gate` after the first piece when it has one."""

    text: str = DRAFT_TEXT
    gate: asyncio.Event | None = None
    refuses: bool = False
    started: asyncio.Event = field(default_factory=asyncio.Event)
    hints: list[str | None] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop | None = None

    def open_gate(self) -> None:
        """Let it go on, from any thread."""
        assert self.gate is not None
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.gate.set)

    async def draft(self, observation: Observation, show: Callable[[str], Awaitable[None]], calls: CallLog) -> Draft:
        self.hints.append(observation.hint)
        if self.refuses:
            raise Escalation("The sources do not answer this.")
        calls.add(PAID)
        self.loop = asyncio.get_running_loop()
        await show(self.text[:5])
        self.started.set()
        if self.gate is not None:
            await self.gate.wait()
        await show(self.text)
        return reply(observation, self.text)


@dataclass
class ScriptedPlanner:
    """Plays a list of plans and failures, then finishes; keeps what was on offer."""

    plans: list[Plan | Exception]
    offered: list[tuple[str, ...]] = field(default_factory=list)

    async def plan(self, observation: Observation, offers: Sequence[SkillOffer], calls: CallLog) -> Plan:
        calls.add(PAID)
        self.offered.append(tuple(offer.name for offer in offers))
        plan = self.plans.pop(0) if self.plans else Finish("the script has ended")
        if isinstance(plan, Exception):
            raise plan
        return plan


def call(skill: str, arguments: str = "{}") -> CallSkill:
    """A call as a model makes it."""
    return CallSkill(skill, arguments)


@dataclass
class KeptJournal:
    """Keeps what it is told, in order."""

    lines: list[tuple[object, ...]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    paid: int = 0

    async def step_started(self, number: int, skill: str, arguments: str, calls: CallLog) -> None:
        self._keep(calls, "started", number, skill, arguments)

    async def step_finished(self, number: int, result: StepResult, outcome: Outcome, calls: CallLog) -> None:
        self._keep(calls, "finished", number, result.skill, type(outcome).__name__)
        self.outcomes.append(outcome)

    async def step_failed(self, number: int, error: StepError, outcome: Outcome, calls: CallLog) -> None:
        self._keep(calls, "failed", number, error.code, type(outcome).__name__)
        self.outcomes.append(outcome)

    async def ended(self, outcome: Outcome, calls: CallLog) -> None:
        self._keep(calls, "ended", type(outcome).__name__)
        self.outcomes.append(outcome)

    def _keep(self, calls: CallLog, *line: object) -> None:
        self.paid += len(calls.take())
        self.lines.append(line)
