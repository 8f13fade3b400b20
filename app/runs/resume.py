"""What a run knows when it starts: its ticket, and what an earlier run (or its own earlier worker) has found out."""

import logging

from psycopg.rows import DictRow
from pydantic import TypeAdapter, ValidationError

from app.agent.steps import is_answerable
from app.agent.values import CHECKPOINT_SCHEMA, Observation, PastTicket, TicketFacts

log = logging.getLogger(__name__)
_PAST = TypeAdapter(tuple[PastTicket, ...])


def first_observation(row: DictRow) -> Observation:
    """Return where a claimed run starts, from the row that the claim returned.

    After a hand-over it is the run's own last checkpoint. A run that follows another (regenerate, retry) keeps that
    one's class, and its passages if they sufficed, so that only the draft is written again.
    """
    ticket = TicketFacts(
        ticket_id=row["ticket_id"],
        number=row["number"],
        channel=row["channel"],
        subject=row["subject"],
        content=row["content"] or "",
        customer_name=row["customer_name"],
        past=_PAST.validate_json(row["past"]),
    )
    fresh = Observation(ticket=ticket, hint=row["hint"])
    earlier = _read_checkpoint(row)
    if earlier is None or (earlier.ticket.subject, earlier.ticket.content) != (ticket.subject, ticket.content):
        return fresh
    if row["checkpoint_is_own"]:
        return earlier
    return _carried_over(fresh, earlier)


def _carried_over(fresh: Observation, earlier: Observation) -> Observation:
    kept = {"classify_ticket"} if earlier.classification is not None else set()
    searched = is_answerable(earlier)
    if searched:
        kept.add("search_knowledge")
    turns = tuple(turn for turn in earlier.turns if turn.skill in kept and not turn.failed)
    return fresh.model_copy(
        update={
            "classification": earlier.classification,
            "search": earlier.search if searched else None,
            "searches": earlier.searches if searched else 0,
            "turns": turns,
        }
    )


def _read_checkpoint(row: DictRow) -> Observation | None:
    if row["schema_version"] != CHECKPOINT_SCHEMA:
        return None
    try:
        return Observation.model_validate_json(row["observation"])
    except ValidationError:
        log.warning("a checkpoint can't be read; the run starts from its beginning")
        return None
