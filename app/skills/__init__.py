"""What the agent can do: the one list."""

from app.agent.admission import AnySkill
from app.agent.ports import PLANNING, Classifier, Drafter, Retriever
from app.skills.classify_ticket import ClassifyTicket
from app.skills.draft_reply import DraftReply
from app.skills.search_knowledge import SearchKnowledge

RETRY_SAFE: frozenset[str] = frozenset(
    {PLANNING, *(skill.name for skill in (ClassifyTicket, SearchKnowledge, DraftReply) if skill.retry_safe)}
)
"""Names of steps, a planner's failed attempt among them, that may be begun once more after their worker died."""


def make_skills(classifier: Classifier, retriever: Retriever, drafter: Drafter) -> tuple[AnySkill, ...]:
    """Return every skill, wired to its port."""
    return (ClassifyTicket(classifier), SearchKnowledge(retriever), DraftReply(drafter))
