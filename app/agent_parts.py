"""The agent's composition root, for the processes that drive runs: each port wired to its implementation.

Apart from `bootstrap.py`, so that web processes don't load what only workers need.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy.orm import Session, sessionmaker

from app.agent.loop import Agent
from app.agent.ports import Planner
from app.agent.rule_planner import RulePlanner
from app.guard.evidence import cite_sentences
from app.knowledge.retrieval import KnowledgeSearch
from app.llm.classifier import ModelClassifier
from app.llm.client import ChatClient
from app.llm.drafter import ModelDrafter
from app.llm.embedding import Embedder, make_embedder
from app.llm.planner import ModelPlanner
from app.offline.classifier import OfflineClassifier
from app.offline.drafter import ExtractiveDrafter
from app.settings import Settings
from app.skills import make_skills


@dataclass(frozen=True, slots=True)
class AgentParts:
    """An agent with what a process does for it: `warm` before the first run, `close` on the loop that used it."""

    agent: Agent
    warm: Callable[[], None]
    close: Callable[[], Awaitable[None]]


def build_agent(settings: Settings, sessions: sessionmaker[Session]) -> AgentParts:
    """Wire the agent: backed by a model when `settings` name one, else offline."""
    embedder = make_embedder(settings)
    search = KnowledgeSearch(sessions, embedder, settings)
    if settings.offline:
        skills = make_skills(OfflineClassifier(embedder), search, ExtractiveDrafter())
        return AgentParts(Agent({"rule": RulePlanner()}, skills), _warmer(embedder, settings), _nothing_to_close)
    client = ChatClient(settings)
    skills = make_skills(ModelClassifier(client), search, ModelDrafter(client, cite_sentences))
    planners: dict[str, Planner] = {"rule": RulePlanner(), "model": ModelPlanner(client)}
    return AgentParts(Agent(planners, skills), _warmer(embedder, settings), client.close)


def _warmer(embedder: Embedder, settings: Settings) -> Callable[[], None]:
    def warm() -> None:
        """Load the local embedding model now rather than in the first run."""
        if not settings.embedding_base_url:
            embedder.embed_queries(["您好"])

    return warm


async def _nothing_to_close() -> None:
    """Close nothing: offline parts hold nothing open."""
