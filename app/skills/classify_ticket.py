"""Gives the ticket its priority and category."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from app.agent.ports import Classifier
from app.agent.skill import Facts, Level, Phase, SkillContext
from app.agent.values import Classification, Observation
from app.msgids import msgid


class ClassifyTicketParams(BaseModel):
    """Both are recorded only: the run's own ticket is classified, so that no model can swap it for another text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ticket_content: str | None = Field(None, max_length=20_000, description="the ticket; may be left out")
    customer_history_summary: str | None = Field(None, max_length=5_000, description="may be left out")


class ClassifyTicket:
    """Skill over the Classifier port."""

    name: ClassVar[str] = "classify_ticket"
    description: ClassVar[str] = "Determine the priority and category of this ticket. Always the first step."
    level: ClassVar[Level] = Level.READ
    phase: ClassVar[Phase] = Phase.CLASSIFY
    retry_safe: ClassVar[bool] = True
    keeps_failing: ClassVar[str] = msgid(
        "Classifying failed three times in a row: what the model wrote could not be used."
    )
    Params: type[BaseModel] = ClassifyTicketParams

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier

    async def run(self, params: ClassifyTicketParams, context: SkillContext) -> Classification:  # noqa: ARG002 - see Params
        """Classify the run's ticket. Raises SkillFailed on output that can't be read."""
        return await self._classifier.classify(context.observation.ticket, context.calls)

    def absorb(self, observation: Observation, result: Classification) -> Observation:
        """Return the observation with the class in it."""
        return observation.model_copy(update={"classification": result})

    def summarize(self, result: Classification) -> Facts:
        """Return the class and how sure it is."""
        return {"priority": result.priority, "category": result.category, "confidence": round(result.confidence, 2)}
