"""The planner without a model: what it does next depends on what is known, and on nothing else."""

import asyncio
import json

import pytest

from app.agent.ports import CallSkill, Finish, Plan
from app.agent.rule_planner import QUERY_CHARS, RulePlanner, rewritten_query, search_query
from app.agent.skill import CallLog
from app.agent.values import Category, Classification, Draft, Observation, Priority, Sufficiency
from app.skills.search_knowledge import SearchKnowledgeParams
from tests.offline.values import make_facts, make_found, make_passage

TICKET = make_facts("你好！！！上周买的锅。退款几天到？谢谢", subject="退款")
CLASS = Classification(priority=Priority.NORMAL, category=Category.REFUND, confidence=0.9, reasoning="")
DRAFT = Draft(text="x", sentences=(), citations=(), confidence=0.5, origin="extract")


def plan(observation: Observation) -> Plan:
    return asyncio.run(RulePlanner().plan(observation, (), CallLog()))


def searched(outcome: Sufficiency, times: int, query: str = "query") -> Observation:
    found = make_found(make_passage("x"), outcome=outcome).model_copy(update={"query": query})
    return Observation(ticket=TICKET, classification=CLASS, search=found, searches=times)


@pytest.mark.parametrize(
    ("known", "skill"),
    [
        (Observation(ticket=TICKET), "classify_ticket"),
        (Observation(ticket=TICKET, classification=CLASS), "search_knowledge"),
        (searched(Sufficiency.INSUFFICIENT, 1), "search_knowledge"),
        (searched(Sufficiency.INSUFFICIENT, 2), None),
        (searched(Sufficiency.WEAK, 1), "draft_reply"),
        (searched(Sufficiency.SUFFICIENT, 2), "draft_reply"),
        (searched(Sufficiency.SUFFICIENT, 1).model_copy(update={"draft": DRAFT}), None),
    ],
)
def test_the_next_skill_follows_from_what_is_known(known: Observation, skill: str | None) -> None:
    move = plan(known)
    if skill is None:
        assert isinstance(move, Finish)
    else:
        assert isinstance(move, CallSkill)
        assert move.name == skill


def test_the_second_search_asks_in_fewer_words() -> None:
    move = plan(searched(Sufficiency.INSUFFICIENT, 1))
    assert isinstance(move, CallSkill)
    assert json.loads(move.arguments) == {"query": "退款\n退款几天到？"}


def test_a_search_that_would_be_the_same_is_not_made_twice() -> None:
    again = rewritten_query(TICKET)
    assert isinstance(plan(searched(Sufficiency.INSUFFICIENT, 1, again)), Finish)


@pytest.mark.parametrize("content", ["x" * 10_000, "？" * 10_000, "谢谢", "\n\n", "啊" * QUERY_CHARS])
def test_any_ticket_gives_a_query_that_the_skill_takes(content: str) -> None:
    facts = make_facts(content, subject="标题" * 50)
    for query in (search_query(facts), rewritten_query(facts)):
        assert len(query) <= QUERY_CHARS
        assert SearchKnowledgeParams(query=query).query
