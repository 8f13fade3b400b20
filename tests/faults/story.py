"""Reads everything that a schedule has left behind, in PostgreSQL and in Valkey."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from redis import Redis

from app.live.publisher import thread_stream
from tests.faults.script import TicketStory
from tests.faults.servers import Servers

Rows = Sequence[Mapping[str, Any]]
_ORDER = {
    "tickets": "number",
    "threads": "id",
    "runs": "id",
    "steps": "run_id, number",
    "checkpoints": "run_id, step_number",
    "artifacts": "id",
    "events": "thread_id, seq",
    "llm_calls": "id",
    "deliveries": "id",
    "ticket_messages": "ticket_id, number",
    "approval_keys": "key",
    "intake_keys": "key",
    "audit_log": "id",
    "witness.moves": "place",
    "witness.ticket_moves": "place",
    "witness.reply_moves": "place",
    "witness.complaints": "place",
}


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One entry of a thread's stream."""

    seq: int
    type: str
    run: str
    payload: Any


class Story:
    """All rows of the tables that runs live in, and the streams."""

    def __init__(self, servers: Servers, deadlocks: int, *, handed_over: Sequence[str], channel_repeats: bool) -> None:
        def rows(table: str) -> Rows:
            return servers.ask(f"SELECT * FROM {table} ORDER BY {_ORDER[table]}")  # noqa: S608 - constants

        self.deadlocks = deadlocks
        self.channel_repeats = channel_repeats
        self.handed_over = [(UUID(name), how) for name, how in (line.split() for line in handed_over)]
        self.tickets, self.threads, self.runs = rows("tickets"), rows("threads"), rows("runs")
        self.deliveries, self.messages = rows("deliveries"), rows("ticket_messages")
        self.approval_keys, self.intake_keys = rows("approval_keys"), rows("intake_keys")
        self.ticket_moves, self.complaints = rows("witness.ticket_moves"), rows("witness.complaints")
        self.reply_moves, self.audit = _by(rows("witness.reply_moves"), "delivery_id"), rows("audit_log")
        self.steps = _by(rows("steps"), "run_id")
        self.checkpoints = _by(rows("checkpoints"), "run_id")
        self.artifacts = _by(rows("artifacts"), "run_id")
        self.calls = _by(rows("llm_calls"), "run_id")
        self.moves = _by(rows("witness.moves"), "run_id")
        self.events = _by(rows("events"), "thread_id")
        self.streams = {thread["id"]: _stream(servers.redis, thread["id"]) for thread in self.threads}

    def events_of(self, run: Mapping[str, Any]) -> Rows:
        """Return the run's events in order."""
        return [event for event in self.events[run["thread_id"]] if event["run_id"] == run["id"]]

    def told(self) -> list[TicketStory]:
        """Return how the tickets came out, in the order that they arrived in."""
        return [self._ticket(ticket) for ticket in self.tickets]

    def _ticket(self, ticket: Mapping[str, Any]) -> TicketStory:
        runs = [run for run in self.runs if run["ticket_id"] == ticket["id"]]
        thread = next(thread["id"] for thread in self.threads if thread["ticket_id"] == ticket["id"])
        return TicketStory(
            status=ticket["status"],
            runs=[run["status"] + (f":{run['error_code']}" if run["error_code"] else "") for run in runs],
            origins=[run["origin"] for run in runs],
            events=[event["type"] for event in self.events[thread]],
            deliveries=[row["state"] for row in self.deliveries if row["ticket_id"] == ticket["id"]],
            messages=[row["kind"] for row in self.messages if row["ticket_id"] == ticket["id"]],
            deaths=[run["deaths"] for run in runs],
        )


def _by(rows: Rows, key: str) -> Mapping[UUID, Rows]:
    found: defaultdict[UUID, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return found


def _stream(redis: "Redis", thread_id: UUID) -> list[StreamEntry]:
    entries: Any = redis.xrange(thread_stream(thread_id))
    return [
        StreamEntry(
            int(entry_id.split(b"-")[0]),
            fields[b"type"].decode(),
            fields[b"run"].decode(),
            orjson.loads(fields[b"payload"]),
        )
        for entry_id, fields in entries
    ]
