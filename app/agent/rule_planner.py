"""The planner that needs no model: the next skill follows from the observation alone."""

import re
from collections.abc import Sequence

from pydantic import BaseModel

from app.agent.ports import CallSkill, Finish, Plan, SkillOffer
from app.agent.skill import CallLog
from app.agent.steps import MAX_SEARCHES, is_answerable
from app.agent.values import Observation, TicketFacts

QUERY_CHARS = 400
"""A longer query costs a second of embedding and finds nothing more: customers ask first or last, not in the middle."""

_SENTENCE_END = re.compile(r"(?<=[。！？!?；;\n])\s*|(?<=\.)\s+")
_ASKS = re.compile(
    r"[?？]|怎么|怎样|如何|请问|多久|多少|几天|几时|什么|啥|哪|能不能|可不可以|可以.{0,12}吗|是不是|有没有|吗|呢|"
    r"\b(?:how|what|when|where|which|who|can|could|do|does|is|are|may)\b",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"您好|你好|谢谢|麻烦(?:您|你)?|请问(?:一下)?|急+|在吗|亲|\b(?:hello|hi|hey|thanks|thank you|please|there)\b", re.I
)
_REPEATS = re.compile(r"([！!？?。.~～…])[！!？?。.~～…]+")


class _NoArguments(BaseModel):
    pass


class _Query(BaseModel):
    query: str


class RulePlanner:
    """Classify, search, search once more in fewer words if nothing fits, draft, finish. Costs no call and no wait."""

    async def plan(self, observation: Observation, offers: Sequence[SkillOffer], calls: CallLog) -> Plan:
        """Return the next move; it depends on what is known only, so that a resumed run goes on where it stopped."""
        del offers, calls  # The order is fixed, and nothing is paid for.
        if observation.classification is None:
            return _call("classify_ticket", _NoArguments())
        if observation.search is None:
            return _call("search_knowledge", _Query(query=search_query(observation.ticket)))
        if not is_answerable(observation):
            rewritten = rewritten_query(observation.ticket)
            if observation.searches >= MAX_SEARCHES or rewritten == observation.search.query:
                return Finish("the knowledge base does not answer this ticket")
            return _call("search_knowledge", _Query(query=rewritten))
        if observation.draft is None:
            return _call("draft_reply", _NoArguments())
        return Finish("the draft is ready")


def search_query(ticket: TicketFacts) -> str:
    """Return what to search for first: the ticket's own words, subject and content, cut to `QUERY_CHARS`."""
    return _cut(f"{ticket.subject.strip()}\n{ticket.content.strip()}".strip())


def rewritten_query(ticket: TicketFacts) -> str:
    """Return the ticket in fewer words: the subject and the sentences that ask, without greetings and shouting."""
    sentences = [part.strip() for part in _SENTENCE_END.split(ticket.content) if part and part.strip()]
    asking = [sentence for sentence in sentences if _ASKS.search(sentence)] or sentences
    text = "\n".join([ticket.subject, *asking])
    text = _REPEATS.sub(r"\1", _NOISE.sub("", text))
    lines = [line.strip(" ，,、。.!！~") for line in text.splitlines()]
    return _cut("\n".join(line for line in lines if line)) or search_query(ticket)


def _cut(text: str) -> str:
    if len(text) <= QUERY_CHARS:
        return text
    half = QUERY_CHARS // 2
    return f"{text[:half]}\n{text[-(QUERY_CHARS - half - 1) :]}"


def _call(skill: str, arguments: BaseModel) -> CallSkill:
    return CallSkill(skill, arguments.model_dump_json())
