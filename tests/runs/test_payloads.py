"""Events hold ids and small facts: however large what a run meets is, its events stay small."""

import orjson
import pytest
from sqlalchemy import update

from app.agent.skill import CallLog
from app.agent.values import Classification, SearchResult, Sufficiency, TicketFacts
from app.bootstrap import Container
from app.runs.models import ArtifactType, Run
from tests.agent.parts import FixedClassifier, FixedDrafter, FixedRetriever, ScriptedPlanner, call
from tests.factories import make_ticket
from tests.runs.conftest import StartRuntime, make_agent
from tests.runs.looking import artifacts_of, events_of

LIMIT = 4_096
"""Bytes of one event's payload as JSON: well within a frame of a stream, and a page of a table."""
LONG = "退款\x07\U0001f9fe" * 5_000


class LongTitles(FixedRetriever):
    """Finds five documents with titles that nobody would give them."""

    async def search(self, query: str) -> SearchResult:
        result = await super().search(query)
        (passage,) = result.passages
        many = tuple(passage.model_copy(update={"ref": f"kb-{n}", "doc_title": f"{n}{LONG}"}) for n in range(1, 6))
        return result.model_copy(update={"query": LONG, "passages": many})


class LongReasoning(FixedClassifier):
    """Says at length why."""

    async def classify(self, ticket: TicketFacts, calls: CallLog) -> Classification:
        found = await super().classify(ticket, calls)
        return found.model_copy(update={"reasoning": LONG[:500]})


TALKS = [
    call(LONG, f'{{"query": "{LONG}"}}'),
    call("classify_ticket", f'{{"{"password" * 2_000}": 1}}'),
    call("classify_ticket", f'{{"ticket_content": "{"详" * 19_000}"}}'),
    call("search_knowledge", f'{{"query": "{LONG}"}}'),
    call("search_knowledge"),
    call("draft_reply", f'{{"ticket_content": "{"详" * 19_000}"}}'),
]


@pytest.mark.parametrize("max_steps", [6, 5])
@pytest.mark.parametrize("outcome", [Sufficiency.SUFFICIENT, Sufficiency.INSUFFICIENT])
def test_no_event_grows_with_what_it_tells_of(
    container: Container, start_runtime: StartRuntime, max_steps: int, outcome: Sufficiency
) -> None:
    made = make_ticket(container, subject="题" * 100, content="文" * 5_000)
    with container.transaction() as session:
        session.execute(update(Run).values(max_steps=max_steps))
    agent = make_agent(
        planner=ScriptedPlanner(list(TALKS)),
        classifier=LongReasoning(),
        retriever=LongTitles([outcome]),
        drafter=FixedDrafter(text="稿" * 4_000),
    )
    start_runtime(agent).execute(made.run_id)
    sizes = {row.type: len(orjson.dumps(row.payload)) for row in events_of(container, made.thread_id)}
    assert "step_completed" in sizes
    assert max(sizes.values()) < LIMIT
    searched = next(row for row in artifacts_of(container, made.run_id) if row.type == ArtifactType.SEARCH_RESULT)
    assert len(orjson.dumps(searched.content)) > 10 * LIMIT
