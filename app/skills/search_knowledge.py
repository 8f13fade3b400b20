"""Finds passages of the knowledge base that may answer the ticket."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from app.agent.ports import Retriever
from app.agent.skill import Facts, Level, Phase, SkillContext
from app.agent.values import Observation, SearchResult
from app.msgids import msgid

QUERY_LIMIT = 500
_TITLES_SHOWN = 3
_TITLE_CHARS = 80


class SearchKnowledgeParams(BaseModel):
    """Without a query the ticket itself is the query."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    query: str | None = Field(None, min_length=1, max_length=QUERY_LIMIT, description="what to look for")


class SearchKnowledge:
    """Skill over the Retriever port."""

    name: ClassVar[str] = "search_knowledge"
    description: ClassVar[str] = (
        "Find passages of the knowledge base for this ticket. If they do not suffice, call it once more in other words."
    )
    level: ClassVar[Level] = Level.READ
    phase: ClassVar[Phase] = Phase.SEARCH
    retry_safe: ClassVar[bool] = True
    keeps_failing: ClassVar[str] = msgid(
        "Searching failed three times in a row: what the model asked for could not be used."
    )
    Params: type[BaseModel] = SearchKnowledgeParams

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    async def run(self, params: SearchKnowledgeParams, context: SkillContext) -> SearchResult:
        """Search with the query given, else with the ticket."""
        return await self._retriever.search(params.query or default_query(context.observation))

    def absorb(self, observation: Observation, result: SearchResult) -> Observation:
        """Return the observation with these passages instead of any before."""
        return observation.model_copy(update={"search": result, "searches": observation.searches + 1})

    def summarize(self, result: SearchResult) -> Facts:
        """Return how much was found, whether it suffices, and in which documents."""
        titles = list(dict.fromkeys(passage.doc_title for passage in result.passages))
        return {
            "found": len(result.passages),
            "outcome": result.verdict.outcome,
            "titles": [title[:_TITLE_CHARS] for title in titles[:_TITLES_SHOWN]],
            "keyword_only": result.keyword_only,
        }


def default_query(observation: Observation) -> str:
    """Return the ticket as a query; the second time its subject alone, which leaves out what led astray."""
    ticket = observation.ticket
    text = ticket.subject if observation.searches else f"{ticket.subject}\n{ticket.content}"
    return text.strip()[:QUERY_LIMIT]
