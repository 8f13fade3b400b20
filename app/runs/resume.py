"""What a run knows when it starts: its ticket, and what an earlier run (or its own earlier worker) has found out."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import dropwhile

from psycopg.rows import DictRow
from pydantic import TypeAdapter, ValidationError

from app.agent.steps import is_answerable
from app.agent.values import READABLE_SCHEMAS, Observation, PastTicket, TicketFacts, ToolMessage
from app.runs.models import RunStatus, in_english

log = logging.getLogger(__name__)
_PAST = TypeAdapter(tuple[PastTicket, ...])

# Why a run starts from its beginning although there is a checkpoint.
NEWER_MESSAGE = "newer_message"
CHECKPOINT_UNREADABLE = "checkpoint_unreadable"


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run knows at its start, and the facts that its first step's event tells of where that is from."""

    observation: Observation
    facts: Mapping[str, object] = field(default_factory=dict)


def beginning_of(row: DictRow) -> Beginning:
    """Return where a claimed run starts, from the row that the claim returned.

    After a hand-over it goes on from its own last checkpoint. A run that retries one that failed goes on from that
    one's: what it has found is kept, and it is told why it failed. A run that follows another for any other reason
    (regenerate) keeps its class, and its passages if they sufficed, so that only the draft is written again. When the
    customer has written since, or the checkpoint can't be read, nothing is kept.
    """
    fresh = Observation(ticket=_ticket(row), hint=row["hint"], earlier_failure=_earlier_failure(row))
    if row["observation"] is None:
        return Beginning(fresh)
    earlier = _read_checkpoint(row)
    if earlier is None:
        return Beginning(fresh, {"fresh": CHECKPOINT_UNREADABLE})
    if not row["same_message"] or _asked(earlier.ticket) != _asked(fresh.ticket):
        return Beginning(fresh.model_copy(update={"earlier_failure": None}), {"fresh": NEWER_MESSAGE})
    if row["checkpoint_is_own"]:
        return Beginning(earlier, _resumed(row["checkpoint_step"]))
    if row["earlier_status"] == RunStatus.FAILED:
        return _resumed_from(fresh, earlier)
    return Beginning(_carried_over(fresh, earlier))


def _ticket(row: DictRow) -> TicketFacts:
    return TicketFacts(
        ticket_id=row["ticket_id"],
        number=row["number"],
        channel=row["channel"],
        subject=row["subject"],
        content=row["content"] or "",
        customer_name=row["customer_name"],
        past=_PAST.validate_json(row["past"]),
    )


def _asked(ticket: TicketFacts) -> tuple[str, str]:
    return ticket.subject, ticket.content


def _earlier_failure(row: DictRow) -> str | None:
    """Return why the run failed that this one retries, as one plain sentence."""
    if row["earlier_status"] != RunStatus.FAILED:
        return None
    return in_english(row["earlier_error"], row["earlier_detail"])


def _resumed(step: int) -> Mapping[str, object]:
    return {"resumed": {"from_step": step}}


def _resumed_from(fresh: Observation, earlier: Observation) -> Beginning:
    """Go on where a run failed, as if its last steps that failed had not been taken."""
    turns = _without_last_failures(earlier.turns)
    kept = {"ticket": fresh.ticket, "hint": fresh.hint, "earlier_failure": fresh.earlier_failure, "turns": turns}
    return Beginning(earlier.model_copy(update=kept), _resumed(len(turns)) if turns else {})


def _without_last_failures(turns: tuple[ToolMessage, ...]) -> tuple[ToolMessage, ...]:
    return tuple(dropwhile(lambda turn: turn.failed, reversed(turns)))[::-1]


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
    """Return what a checkpoint holds, or None when it is damaged or of a version that we do not know."""
    version: int = row["schema_version"]
    if version not in READABLE_SCHEMAS:
        log.warning("a checkpoint is of version %d, which can't be read; the run starts from its beginning", version)
        return None
    try:
        return Observation.model_validate_json(row["observation"])
    except ValidationError:
        log.warning("a checkpoint is damaged; the run starts from its beginning")
        return None
