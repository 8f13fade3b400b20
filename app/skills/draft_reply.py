"""Writes the reply that a reviewer will see, from the passages found and nothing else."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from app.agent.ports import Drafter
from app.agent.skill import Facts, Level, Phase, SkillContext
from app.agent.values import Draft, Observation
from app.msgids import msgid


class DraftReplyParams(BaseModel):
    """Recorded only: the reply answers the run's own ticket."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ticket_content: str | None = Field(None, max_length=20_000, description="the ticket; may be left out")


class DraftReply:
    """Skill over the Drafter port. It stages a draft and never sends anything."""

    name: ClassVar[str] = "draft_reply"
    description: ClassVar[str] = "Write a reply for review from the passages found. Always the last step."
    level: ClassVar[Level] = Level.DRAFT
    phase: ClassVar[Phase] = Phase.DRAFT
    retry_safe: ClassVar[bool] = True
    keeps_failing: ClassVar[str] = msgid(
        "Drafting failed three times in a row: what the model wrote could not be used."
    )
    Params: type[BaseModel] = DraftReplyParams

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter

    async def run(self, params: DraftReplyParams, context: SkillContext) -> Draft:  # noqa: ARG002 - see Params
        """Draft the reply, shown as it grows.

        Raises SkillFailed on output that can't be read, Escalation when the sources do not answer.
        """
        return await self._drafter.draft(context.observation, context.show_draft, context.calls)

    def absorb(self, observation: Observation, result: Draft) -> Observation:
        """Return the observation with the draft in it."""
        return observation.model_copy(update={"draft": result})

    def summarize(self, result: Draft) -> Facts:
        """Return how long the draft is, what it cites and how sure it is."""
        return {
            "characters": len(result.text),
            "citations": len(result.citations),
            "confidence": round(result.confidence, 2),
            "origin": result.origin,
        }
