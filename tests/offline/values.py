"""Values that the tests of offline mode start from."""

from app.agent.values import Observation, Passage, SearchResult, Sufficiency, TicketFacts, Verdict
from app.ids import new_id


def make_facts(content: str, *, subject: str = "问一下", name: str = "陈雨桐", channel: str = "app") -> TicketFacts:
    """Return a ticket as a run sees it."""
    return TicketFacts(
        ticket_id=new_id(), number=1, channel=channel, subject=subject, content=content, customer_name=name
    )


def make_passage(
    text: str, *, ref: str = "kb-1", heading: str = "说明", title: str = "帮助", fused: float = 1.0
) -> Passage:
    """Return a passage of a document of its own."""
    return Passage(
        ref=ref,
        chunk_id=new_id(),
        doc_id=new_id(),
        doc_version=1,
        doc_title=title,
        heading=heading,
        text=text,
        vector_score=0.9,
        vector_rank=1,
        keyword_score=3.0,
        keyword_rank=1,
        fused=fused,
    )


def make_found(*passages: Passage, outcome: Sufficiency = Sufficiency.SUFFICIENT) -> SearchResult:
    """Return what a search found."""
    verdict = Verdict(outcome=outcome, probability=0.8, reason="The passages fit.")
    return SearchResult(query="query", passages=passages, verdict=verdict)


def make_observation(ticket: TicketFacts, found: SearchResult | None, hint: str | None = None) -> Observation:
    """Return what a run knows before it drafts."""
    return Observation(ticket=ticket, hint=hint, search=found, searches=1 if found else 0)
