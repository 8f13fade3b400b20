"""The local embedder with the vectors of the demo's and the held-out tickets at hand, since embedding is slow.

    python -m tests.support.ticket_vectors

writes them anew. A text that is not among them is embedded, so a stale file only costs time.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from app.agent.rule_planner import rewritten_query, search_query
from app.agent.values import TicketFacts
from app.demo.tickets import TICKETS_FILE, DemoTicket, read_tickets
from app.ids import new_id
from app.knowledge.chunking import content_hash
from app.knowledge.query import parse_query
from app.knowledge.vectors import load_vectors, save_vectors
from app.llm.embedding import LOCAL_DIMENSIONS, LOCAL_NAME, LocalEmbedder, Vector

DATA = Path(__file__).parent.parent / "data"
HELD_OUT_FILE = DATA / "held_out_tickets.jsonl"
_FILE = DATA / "ticket_vectors.npz"


class TicketEmbedder:
    """Implements Embedder; the model is loaded only when something else than a known ticket is embedded."""

    name = LOCAL_NAME
    dimensions = LOCAL_DIMENSIONS

    def __init__(self) -> None:
        self._known = load_vectors(_FILE, LOCAL_NAME)

    @cached_property
    def _model(self) -> LocalEmbedder:
        return LocalEmbedder()

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        digests = {text: content_hash(text) for text in texts}
        unknown = [text for text, digest in digests.items() if digest not in self._known]
        fresh = dict(zip(unknown, self._model.embed_queries(unknown) if unknown else [], strict=True))
        return [fresh[text] if text in fresh else self._known[digests[text]] for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return self._model.embed_passages(texts)


def facts_of(ticket: DemoTicket) -> TicketFacts:
    """Return a ticket of a file as a run sees it."""
    return TicketFacts(
        ticket_id=new_id(),
        number=1,
        channel=ticket.channel,
        subject=ticket.subject,
        content=ticket.content,
        customer_name=ticket.customer_name,
    )


def main() -> None:
    """Embed whatever offline mode asks of every ticket and is not known yet, and write the file."""
    embedder = TicketEmbedder()
    texts = list(set(_texts()))
    vectors = embedder.embed_queries(texts)
    save_vectors(_FILE, embedder.name, dict(zip(map(content_hash, texts), vectors, strict=True)))


def _texts() -> Iterator[str]:
    for file in (TICKETS_FILE, HELD_OUT_FILE):
        for ticket in read_tickets(file):
            facts = facts_of(ticket)
            yield search_query(facts)
            for query in (search_query(facts), rewritten_query(facts)):
                yield from parse_query(query).units


if __name__ == "__main__":
    main()
