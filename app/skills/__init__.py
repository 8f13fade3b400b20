"""What the agent can do: the one list."""

from app.agent.admission import AnySkill
from app.agent.ports import Classifier, Drafter, Retriever
from app.skills.classify_ticket import ClassifyTicket
from app.skills.draft_reply import DraftReply
from app.skills.search_knowledge import SearchKnowledge


def make_skills(classifier: Classifier, retriever: Retriever, drafter: Drafter) -> tuple[AnySkill, ...]:
    """Return every skill, wired to its port."""
    return (ClassifyTicket(classifier), SearchKnowledge(retriever), DraftReply(drafter))
