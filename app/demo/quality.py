"""How good offline mode is on tickets with known answers: the real loop, skills and knowledge base, counted."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.agent.loop import RunPorts, Start, drive
from app.agent.ports import StepError, StepResult
from app.agent.rule_planner import RulePlanner
from app.agent.skill import CallLog
from app.agent.steps import Budget, DraftReady, Outcome
from app.agent.values import Classification, Draft, Observation, Priority, TicketFacts, Verdict
from app.bootstrap import Container
from app.demo.tickets import DemoTicket, read_tickets
from app.ids import new_id
from app.knowledge.retrieval import KnowledgeSearch
from app.llm.embedding import Embedder, make_embedder
from app.offline.classifier import OfflineClassifier
from app.offline.drafter import ExtractiveDrafter
from app.skills import make_skills


@dataclass(frozen=True, slots=True)
class Checked:
    """What the agent made of one ticket; no draft means that it went to a person."""

    ticket: DemoTicket
    classification: Classification
    verdict: Verdict | None
    draft: Draft | None

    @property
    def points_held(self) -> int:
        """How many of the key points stand in the draft."""
        text = self.draft.text if self.draft else ""
        return sum(any(wording in text for wording in point) for point in self.ticket.key_points)

    @property
    def is_complete(self) -> bool:
        """Whether there is a draft with every key point."""
        return self.draft is not None and self.points_held == len(self.ticket.key_points)

    @property
    def is_offered_as_known(self) -> bool:
        """Whether a draft is offered without any warning."""
        return self.draft is not None and self.draft.warning is None


@dataclass(frozen=True)
class QualityReport:
    """The figures over all tickets checked; shares are in 0..1."""

    checked: tuple[Checked, ...]

    @cached_property
    def answerable(self) -> tuple[Checked, ...]:
        """The tickets that the knowledge base answers."""
        return tuple(one for one in self.checked if one.ticket.answerable)

    @cached_property
    def unanswerable(self) -> tuple[Checked, ...]:
        """The tickets that it does not answer."""
        return tuple(one for one in self.checked if not one.ticket.answerable)

    @property
    def complete_share(self) -> float:
        """Answerable tickets whose draft holds every key point."""
        return _share(self.answerable, lambda one: one.is_complete)

    @property
    def points_share(self) -> float:
        """Key points of answerable tickets that stand in a draft."""
        wanted = sum(len(one.ticket.key_points) for one in self.answerable)
        return sum(one.points_held for one in self.answerable) / wanted if wanted else 0.0

    @property
    def offered_as_known(self) -> tuple[Checked, ...]:
        """Unanswerable tickets with a draft and no warning: there must be none."""
        return tuple(one for one in self.unanswerable if one.is_offered_as_known)

    @property
    def category_accuracy(self) -> float:
        """Tickets with the expected category."""
        return _share(self.checked, lambda one: one.classification.category is one.ticket.expected_category)

    @property
    def priority_accuracy(self) -> float:
        """Tickets with the expected priority."""
        return _share(self.checked, lambda one: one.classification.priority is one.ticket.expected_priority)

    @property
    def urgent_recall(self) -> float:
        """Urgent tickets that were called urgent."""
        urgent = [one for one in self.checked if one.ticket.expected_priority is Priority.URGENT]
        return _share(urgent, lambda one: one.classification.priority is Priority.URGENT)

    @property
    def urgent_called_routine(self) -> tuple[Checked, ...]:
        """Urgent tickets that were called auto_reply: there must be none."""
        return tuple(
            one
            for one in self.checked
            if one.ticket.expected_priority is Priority.URGENT and one.classification.priority is Priority.AUTO_REPLY
        )


class _NoJournal:
    """A journal that keeps nothing: a check leaves no runs behind."""

    async def step_started(self, number: int, skill: str, arguments: str, calls: CallLog) -> None:
        """Record nothing."""

    async def step_finished(self, number: int, result: StepResult, outcome: Outcome, calls: CallLog) -> None:
        """Record nothing."""

    async def step_failed(self, number: int, error: StepError, outcome: Outcome, calls: CallLog) -> None:
        """Record nothing."""

    async def ended(self, outcome: Outcome, calls: CallLog) -> None:
        """Record nothing."""


def check(
    container: Container, tickets: Sequence[DemoTicket] | None = None, *, embedder: Embedder | None = None
) -> QualityReport:
    """Run tickets (the demo's by default) through offline mode on the knowledge base as it is now, and count.

    Offline mode is checked whatever the settings say of a model. Nothing is written. Raises what the database raises.
    """
    return asyncio.run(_check(container, tickets or read_tickets(), embedder or make_embedder(container.settings)))


async def _check(container: Container, tickets: Sequence[DemoTicket], embedder: Embedder) -> QualityReport:
    settings = container.settings
    skills = make_skills(
        OfflineClassifier(embedder), KnowledgeSearch(container.sessions, embedder, settings), ExtractiveDrafter()
    )
    ports = RunPorts(RulePlanner(), skills, _NoJournal(), CallLog(), _show_nobody, settings.skill_timeout_s)
    return QualityReport(tuple([await _one(ticket, ports, settings.max_steps) for ticket in tickets]))


async def _one(ticket: DemoTicket, ports: RunPorts, max_steps: int) -> Checked:
    facts = TicketFacts(
        ticket_id=new_id(),
        number=1,
        channel=ticket.channel,
        subject=ticket.subject,
        content=ticket.content,
        customer_name=ticket.customer_name,
    )
    outcome = await drive(Start(Observation(ticket=facts), 0, Budget(max_steps, max_steps)), ports)
    known = outcome.observation
    if known.classification is None:
        raise RuntimeError(f"Ticket {ticket.key} was not classified: {known.turns}")
    return Checked(
        ticket,
        known.classification,
        known.search.verdict if known.search else None,
        known.draft if isinstance(outcome, DraftReady) else None,
    )


async def _show_nobody(text: str) -> None:
    """Take a draft in the making that nobody watches."""


def _share(checked: Sequence[Checked], holds: Callable[[Checked], bool]) -> float:
    return sum(map(holds, checked)) / len(checked) if checked else 0.0
