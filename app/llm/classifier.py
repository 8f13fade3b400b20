"""The classifier that asks a model."""

from pydantic import BaseModel, Field, field_validator

from app.agent.skill import CallLog
from app.agent.values import Category, Classification, Priority, TicketFacts
from app.llm.client import ChatClient, ChatRequest
from app.llm.prompting import Fence, load_prompt, plain
from app.llm.ticket_text import ticket_part

MAX_REASONING = 500


class ClassifyAnswer(BaseModel):
    """What the model is asked for. A category that we do not have counts as `other`; a priority must be ours."""

    priority: Priority
    category: Category
    confidence: float = Field(ge=0, le=1)
    reasoning: str = ""

    @field_validator("category", mode="before")
    @classmethod
    def known_or_other(cls, value: object) -> Category:
        """Take an unknown category for `other`: a new word of the model's is no reason to fail."""
        return next((category for category in Category if category == value), Category.OTHER)


class ModelClassifier:
    """Implements `agent.ports.Classifier` by a JSON answer."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client
        self._prompt = load_prompt("classify")

    async def classify(self, ticket: TicketFacts, calls: CallLog) -> Classification:
        """Return the model's class. Raises SkillFailed on an answer that does not fit, ModelUnavailable on none."""
        fence = Fence(ticket.subject, ticket.content)
        user = self._prompt.render("user", channel=ticket.channel, ticket=ticket_part(ticket, fence))
        request = ChatRequest(
            "classify",
            self._prompt.version,
            ({"role": "system", "content": self._prompt.render("system")}, {"role": "user", "content": user}),
        )
        answer = await self._client.complete_json(request, ClassifyAnswer, calls)
        return classification_of(answer)


def classification_of(answer: ClassifyAnswer) -> Classification:
    """Return the answer as our value; its reasoning is a stranger's text too, so it is cleaned and cut."""
    return Classification(
        priority=answer.priority,
        category=answer.category,
        confidence=answer.confidence,
        reasoning=plain(answer.reasoning).strip()[:MAX_REASONING],
    )
