"""What must be on record of what people have done, once a schedule has come to rest."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from app.runs.models import RunOrigin
from tests.faults.story import Story

ASKED_FOR = {
    RunOrigin.REGENERATE: "draft_regenerated",
    RunOrigin.RETRY: "draft_regenerated",
    RunOrigin.MANUAL: "manual_started",
}
AUDITED = {
    "reply_approved": "reply_approved",
    "run_escalated": "run_escalated",
    "run_cancelled": "run_cancelled",
    "ticket_moved": "ticket_moved",
    "ticket_changed": "ticket_class_set",
}
"""What an event that names a person is on record as."""


def people_are_on_record(story: Story) -> Iterator[str]:
    """The audit log has one entry for each thing that a person did, and none for what nobody did."""
    told = Counter[tuple[str, Any]]()
    for thread in story.threads:
        for event in story.events[thread["id"]]:
            action = _audited(event)
            if action:
                told[action, event["run_id"] or thread["ticket_id"]] += 1
    for run in story.runs:
        if run["origin"] in ASKED_FOR:
            told[ASKED_FOR[run["origin"]], run["id"]] += 1
    actions = {*AUDITED.values(), *ASKED_FOR.values()}
    kept = Counter(
        (entry["action"], entry["run_id"] or entry["ticket_id"]) for entry in story.audit if entry["action"] in actions
    )
    for action, about in sorted((told - kept) + (kept - told), key=str):
        yield f"{action} of {about} happened {told[action, about]} times, on record {kept[action, about]} times"


def _audited(event: Mapping[str, Any]) -> str | None:
    """Return the action that an event of a person's doing is on record as; a move that follows from it is not."""
    payload = event["payload"]
    follows = payload.get("reason", "person") != "person"
    return AUDITED.get(event["type"]) if "by" in payload and not follows else None
