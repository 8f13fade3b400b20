"""The demo tickets, with what a good answer to each holds."""

import json
from dataclasses import dataclass
from pathlib import Path

from app.agent.values import Category, Priority

TICKETS_FILE = Path(__file__).with_name("tickets.jsonl")


@dataclass(frozen=True, slots=True)
class DemoTicket:
    """A ticket as a customer wrote it, and what is expected of the agent.

    `key_points` are the facts that a draft must hold; each is a tuple of wordings, any of which counts.
    """

    key: str
    customer_id: str
    customer_name: str
    channel: str
    subject: str
    content: str
    expected_priority: Priority
    expected_category: Category
    answerable: bool
    key_points: tuple[tuple[str, ...], ...]


def read_tickets(path: Path = TICKETS_FILE) -> tuple[DemoTicket, ...]:
    """Return the tickets of a file of JSON lines, in its order."""
    return tuple(_ticket(line) for line in path.read_text(encoding="utf-8").splitlines())


def _ticket(line: str) -> DemoTicket:
    row = json.loads(line)
    return DemoTicket(
        key=row["key"],
        customer_id=row["customer_id"],
        customer_name=row["customer_name"],
        channel=row["channel"],
        subject=row["subject"],
        content=row["content"],
        expected_priority=Priority(row["expected_priority"]),
        expected_category=Category(row["expected_category"]),
        answerable=row["answerable"],
        key_points=tuple(tuple(point) for point in row["key_points"]),
    )
