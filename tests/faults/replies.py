"""What must hold of approved replies once all has come to rest: each leaves once or is taken back, and that is told.

`story.handed_over` is what the channel itself has noted of each hand-over: "sent", "refused" or "broke".
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from app.delivery.models import DeliveryState
from app.delivery.service import MOST_ATTEMPTS
from app.runs.models import RunStatus
from app.tickets.models import DONE
from tests.faults.story import Story

Violations = Iterator[str]
S = DeliveryState
MOVES: Mapping[str, frozenset[str]] = {
    S.HELD: frozenset({S.SENDING, S.RECALLED}),
    S.SENDING: frozenset({S.SENDING, S.SENT, S.FAILED, S.UNKNOWN}),
}
"""A reply that has begun to leave is never taken back; an end is left by none."""
END_EVENT = {
    S.SENT: "reply_sent",
    S.FAILED: "reply_failed",
    S.UNKNOWN: "reply_failed",
    S.RECALLED: "reply_recalled",
}


def nothing_is_sent_twice(story: Story) -> Violations:
    """A run has at most one reply, each reply one delivery, each that was sent one message; a key has one effect."""
    sent = {run["id"]: [a for a in story.artifacts[run["id"]] if a["type"] == "sent_reply"] for run in story.runs}
    delivered = Counter(delivery["artifact_id"] for delivery in story.deliveries)
    messages = Counter(message["artifact_id"] for message in story.messages if message["kind"] == "reply")
    for run in story.runs:
        if len(sent[run["id"]]) != (run["status"] == RunStatus.COMPLETED):
            yield f"run {run['id']} is {run['status']} and has {len(sent[run['id']])} replies"
        for artifact in sent[run["id"]]:
            if delivered[artifact["id"]] != 1:
                yield f"reply {artifact['id']} has {delivered[artifact['id']]} deliveries"
    for delivery in story.deliveries:
        if messages[delivery["artifact_id"]] != (delivery["state"] == S.SENT):
            yield f"delivery {delivery['id']} is {delivery['state']}: {messages[delivery['artifact_id']]} messages"
    per_run = Counter(key["run_id"] for key in story.approval_keys)
    if any(count > 1 for count in per_run.values()):
        yield f"runs were approved more than once: {per_run}"


def replies_move_by_the_table(story: Story) -> Violations:
    """A reply is held, then taken back or sent; only a claim counts an attempt, and only the last claim's sender ends
    it."""
    for delivery in story.deliveries:
        sender = None
        for move in story.reply_moves[delivery["id"]]:
            if move["was"] is None:
                continue
            name = f"delivery {delivery['id']}"
            if move["became"] not in MOVES.get(move["was"], frozenset()):
                yield f"{name} went from {move['was']} to {move['became']} (by {move['writer']})"
            if move["attempts"] - move["was_attempts"] != (move["became"] == S.SENDING):
                yield f"{name} became {move['became']} in attempt {move['attempts']} after {move['was_attempts']}"
            if move["became"] == S.SENDING:
                sender = move["writer"]
            elif move["was"] == S.SENDING and move["writer"] != sender:
                yield f"{name} was {move['became']} by {move['writer']} when {sender} had taken it over"


def replies_end_as_their_channel_did(story: Story) -> Violations:
    """What is sent was handed over; what failed was refused; what is unknown broke, or was cut off for good; what was
    taken back was never handed over. A channel that can't repeat was given a reply once."""
    for delivery in story.deliveries:
        ends = Counter(how for delivery_id, how in story.handed_over if delivery_id == delivery["id"])
        holds = {
            S.SENT: ends["sent"] > 0,
            S.FAILED: ends["refused"] > 0,
            S.UNKNOWN: ends["broke"] > 0 or delivery["attempts"] > (MOST_ATTEMPTS if story.channel_repeats else 1),
            S.RECALLED: not ends,
        }
        state = S(delivery["state"])
        if not holds.get(state, True):
            yield f"delivery {delivery['id']} is {state} in attempt {delivery['attempts']}, its channel {dict(ends)}"
        if not story.channel_repeats and ends["sent"] > 1:
            yield f"delivery {delivery['id']} was handed over {ends['sent']} times to a channel that can't repeat"


def ends_of_replies_are_told(story: Story) -> Violations:
    """Each reply that has left, failed or was taken back has one event that says so, and no other end."""
    told: dict[str, list[str]] = {}
    for events in story.events.values():
        for event in events:
            if event["type"] in END_EVENT.values():
                told.setdefault(event["payload"]["artifact"], []).append(event["type"])
    for delivery in story.deliveries:
        wanted = [END_EVENT[state] for state in END_EVENT if state == delivery["state"]]
        if told.get(str(delivery["artifact_id"]), []) != wanted:
            yield f"delivery {delivery['id']} is {delivery['state']}, told {told.get(str(delivery['artifact_id']))}"


def a_message_is_answered_once(story: Story) -> Violations:
    """Two replies are sent to the same message only where a person has opened the ticket again between them.

    A customer's message opens it too, but what is drafted then answers that one. A reply that crosses with a newer
    message answers the older one.
    """
    answers = {str(artifact["id"]): run for run in story.runs for artifact in story.artifacts[run["id"]]}
    for thread in story.threads:
        sent: dict[Any, list[int]] = {}
        opened = []
        for event in story.events[thread["id"]]:
            if event["type"] == "ticket_moved" and event["payload"]["from"] in DONE:
                opened.append(event["seq"])
            if event["type"] == "reply_sent":
                run = answers[event["payload"]["artifact"]]
                sent.setdefault(run["last_customer_message_id"], []).append(event["seq"])
        for message, places in sent.items():
            for before, after in pairwise(places):
                if not any(before < place < after for place in opened):
                    yield f"message {message} was answered by the events {before} and {after} of thread {thread['id']}"


ALWAYS = (
    nothing_is_sent_twice,
    replies_move_by_the_table,
    replies_end_as_their_channel_did,
    ends_of_replies_are_told,
    a_message_is_answered_once,
)
