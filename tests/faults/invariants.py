"""What must hold once a schedule has come to rest. Each function yields what is not so, in words for a person."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import orjson

from app.delivery.models import DeliveryState
from app.runs.lifecycle import FINAL, MOVES
from app.runs.models import ACTIVE, RunOrigin, RunStatus
from app.tickets.lifecycle import MOVES as TICKET_MOVES
from app.tickets.models import DONE, TicketStatus
from tests.faults.commands import Command
from tests.faults.story import Story

Violations = Iterator[str]
Row = Mapping[str, Any]
FINAL_EVENT = {
    RunStatus.COMPLETED: "run_completed",
    RunStatus.FAILED: "run_failed",
    RunStatus.CANCELLED: "run_cancelled",
    RunStatus.SUPERSEDED: "run_superseded",
}
MADE_BY_STEPS = ("classification", "search_result", "draft")
AFTER_THE_END = {
    "run_completed": {"reply_sent", "reply_failed", "reply_recalled"},
    "run_failed": {"run_not_retried"},
}
"""What may still be said of a run that has ended: how its reply fared, and that its retry was dropped."""
BY_ITSELF = (RunOrigin.TIMED_OUT, RunOrigin.WORKER_LOST)
WAITS = (RunStatus.WAITING_FOR_REVIEW, RunStatus.WAITING_FOR_ESCALATION)


def nobody_forgets_a_run(story: Story) -> Violations:
    """Every run is final or waits for a person; no retry is due; no reply is on its way."""
    for run in story.runs:
        if run["status"] not in FINAL and run["status"] not in WAITS:
            yield f"run {run['id']} is {run['status']} and nobody moves it"
        if run["retry_at"] is not None:
            yield f"the retry of run {run['id']} is due and nobody makes it"
    for delivery in story.deliveries:
        if delivery["state"] in (DeliveryState.HELD, DeliveryState.SENDING):
            yield f"delivery {delivery['id']} is still {delivery['state']}"


def tickets_are_true(story: Story) -> Violations:
    """A ticket's status is one that there is, agrees with its runs, and was reached by moves of the table."""
    for ticket in story.tickets:
        runs = [run for run in story.runs if run["ticket_id"] == ticket["id"]]
        if ticket["status"] not in list(TicketStatus):
            yield f"ticket {ticket['number']} is {ticket['status']}"
        if ticket["status"] in DONE and any(run["status"] in ACTIVE for run in runs):
            yield f"ticket {ticket['number']} is {ticket['status']} and has an active run"
        if ticket["status"] == TicketStatus.PROCESSING and not any(run["status"] in ACTIVE for run in runs):
            yield f"ticket {ticket['number']} is processing and has no active run"
        if ticket["status"] == TicketStatus.RESOLVED and ticket["resolved_at"] is None:
            yield f"ticket {ticket['number']} is resolved since never"
    for move in story.ticket_moves:
        if move["became"] not in TICKET_MOVES[TicketStatus(move["was"])]:
            yield f"ticket {move['ticket_id']} went from {move['was']} to {move['became']} (by {move['writer']})"


def one_run_at_a_time(story: Story) -> Violations:
    """At most one run a thread is active, now and after each move that there was."""
    status: dict[Any, dict[Any, str]] = {}
    moves = sorted((move for moves in story.moves.values() for move in moves), key=lambda move: move["place"])
    for move in moves:
        runs = status.setdefault(move["thread_id"], {})
        runs[move["run_id"]] = move["became"]
        if sum(now in ACTIVE for now in runs.values()) > 1:
            yield f"two runs of thread {move['thread_id']} were active at once"


def moves_are_legal(story: Story) -> Violations:
    """Every move is in the table, a final state is left by none, and only a claim raises the fence."""
    for run in story.runs:
        for move in story.moves[run["id"]]:
            if move["was"] is None:
                continue
            claimed = move["became"] == RunStatus.RUNNING
            if move["was"] != move["became"] and move["became"] not in MOVES[RunStatus(move["was"])]:
                yield f"run {run['id']} went from {move['was']} to {move['became']} (by {move['writer']})"
            if move["fence"] - move["was_fence"] != claimed:
                yield f"the fence of run {run['id']} went from {move['was_fence']} to {move['fence']}"
        for before, after in pairwise(story.moves[run["id"]]):
            if before["became"] != after["was"]:
                yield f"run {run['id']} was {before['became']}, then {after['was']}"


def events_are_numbered(story: Story) -> Violations:
    """A thread's events are numbered without gap or double, and all have been published."""
    for thread in story.threads:
        numbers = [event["seq"] for event in story.events[thread["id"]]]
        if numbers != list(range(1, thread["last_seq"] + 1)):
            yield f"the events of thread {thread['id']}, which counts to {thread['last_seq']}, are {numbers}"
        if thread["published_seq"] != thread["last_seq"]:
            yield f"thread {thread['id']} published {thread['published_seq']} of {thread['last_seq']}"


def events_tell_the_moves(story: Story) -> Violations:
    """Each run is created once, started as often as it was claimed, ends in its state once, and is silent then."""
    for run in story.runs:
        events = story.events_of(run)
        counts = Counter(event["type"] for event in events)
        if counts["run_created"] != 1:
            yield f"run {run['id']} was created {counts['run_created']} times"
        if counts["run_started"] != run["fence"]:
            yield f"run {run['id']} was claimed {run['fence']} times and started {counts['run_started']} times"
        for kind, moves in _moves_told(story, run).items():
            if counts[kind] != moves:
                yield f"run {run['id']} has {counts[kind]} {kind} and {moves} moves that it tells of"
        ends = [event["type"] for event in events if event["type"] in FINAL_EVENT.values()]
        wanted = [FINAL_EVENT[RunStatus(run["status"])]] if run["status"] in FINAL else []
        if ends != wanted:
            yield f"run {run['id']} is {run['status']} and its ends are {ends}"
        yield from _after_the_end(run, [event["type"] for event in events])


def _moves_told(story: Story, run: Row) -> Mapping[str, int]:
    """Return how many events of some types a run must have: for its moves, and for what it goes on from."""
    moved = Counter((move["was"], move["became"]) for move in story.moves[run["id"]])
    follows = run["origin"] in BY_ITSELF
    return {
        "run_retrying": moved[RunStatus.RUNNING, RunStatus.RETRYING] + follows,
        "review_requested": moved[RunStatus.RUNNING, RunStatus.WAITING_FOR_REVIEW],
        "run_escalated": sum(count for (_, became), count in moved.items() if became == WAITS[1]),
    }


def _after_the_end(run: Row, types: Sequence[str]) -> Violations:
    ends = [place for place, kind in enumerate(types) if kind in FINAL_EVENT.values()]
    if ends:
        late = set(types[ends[0] + 1 :]) - AFTER_THE_END.get(types[ends[0]], set())
        if late:
            yield f"run {run['id']} had ended and still {sorted(late)}"


def steps_and_checkpoints_agree(story: Story) -> Violations:
    """Each finished step has its event, its checkpoint and what it made; a step that was cut off has none of them."""
    for run in story.runs:
        events = story.events_of(run)
        told = {
            kind: [event["payload"]["step"] for event in events if event["type"] == kind]
            for kind in ("step_started", "step_completed", "step_failed")
        }
        steps = {step["number"]: step for step in story.steps[run["id"]]}
        finished = sorted(told["step_completed"] + told["step_failed"])
        kept = [row["step_number"] for row in story.checkpoints[run["id"]]]
        made = [row for row in story.artifacts[run["id"]] if row["type"] in MADE_BY_STEPS]
        name = f"run {run['id']}"
        if sorted(told["step_started"]) != sorted(steps):
            yield f"{name} has steps {sorted(steps)} and said that {told['step_started']} started"
        if finished != kept:
            yield f"{name} finished {finished} and has checkpoints {kept}"
        if sorted(number for number, step in steps.items() if step["output"] is not None) != told["step_completed"]:
            yield f"{name} completed {told['step_completed']} and other steps have an output"
        if len(made) != len(told["step_completed"]):
            yield f"{name} completed {told['step_completed']} and made {[row['type'] for row in made]}"
        if steps and run["cur_step"] != max(steps):
            yield f"{name} is at step {run['cur_step']} of {sorted(steps)}"
        if [number for number, step in steps.items() if step["ended_at"] is None]:
            yield f"{name} is {run['status']} and has a step that never ended"


def no_message_is_forgotten(story: Story) -> Violations:
    """The newest run of a ticket answers its newest message, unless the ticket was spam at some time."""
    for thread in story.threads:
        ticket = next(ticket for ticket in story.tickets if ticket["id"] == thread["ticket_id"])
        newest = [run for run in story.runs if run["thread_id"] == thread["id"]][-1]
        was_spam = any(event["payload"].get("to") == TicketStatus.SPAM for event in story.events[thread["id"]])
        if newest["last_customer_message_id"] != ticket["last_customer_message_id"] and not was_spam:
            yield f"no run of ticket {ticket['number']} answers its newest message"


def calls_are_counted(story: Story) -> Violations:
    """What a run has cost is the sum of its calls."""
    for run in story.runs:
        for name in ("tokens_in", "tokens_out", "cost_micro"):
            paid = sum(call[name] for call in story.calls[run["id"]])
            if run[name] != paid:
                yield f"run {run['id']} counts {run[name]} {name}, its calls {paid}"


def retries_are_made(story: Story) -> Violations:
    """Who fails "to be retried" is followed by one run that says so, or by an event that says why not, which is true;
    and only such a run is followed by itself."""
    for run in story.runs:
        events = story.events_of(run)
        announced = [event for event in events if event["type"] == "run_failed" and event["payload"].get("retry")]
        dropped = [event for event in events if event["type"] == "run_not_retried"]
        followers = [r for r in story.runs if r["retry_from"] == run["id"] and r["origin"] in BY_ITSELF]
        if len(followers) + len(dropped) != len(announced):
            yield (
                f"run {run['id']} was to be retried {len(announced)} times, was so {len(followers)} times, "
                f"and {len(dropped)} times was said not to be"
            )
        if announced and dropped and not _went_on(story, run, announced[0]["seq"]):
            yield f"run {run['id']} was not retried though nothing had happened"


def _went_on(story: Story, run: Row, since: int) -> bool:
    """Say whether a failed run's ticket has been done since, or has another run."""
    later = [event for event in story.events[run["thread_id"]] if event["seq"] > since]
    was_done = any(event["type"] == "ticket_moved" and event["payload"]["to"] in DONE for event in later)
    return was_done or any(event["type"] == "run_created" for event in later)


def streams_repeat_the_events(story: Story) -> Violations:
    """What a stream has is what PostgreSQL has under that number; it may lack some, which readers fill in."""
    for thread in story.threads:
        events = {event["seq"]: event for event in story.events[thread["id"]]}
        for entry in story.streams[thread["id"]]:
            event = events.get(entry.seq)
            known = event and (event["type"], str(event["run_id"] or ""), orjson.loads(orjson.dumps(event["payload"])))
            if known != (entry.type, entry.run, entry.payload):
                yield f"the stream says that {entry.seq} is {entry}, PostgreSQL {known}"


def nobody_deadlocks(story: Story) -> Violations:
    """PostgreSQL has broken no deadlock."""
    if story.deadlocks > 0:  # a crash forgets those of before
        yield f"PostgreSQL broke {story.deadlocks} deadlocks"


def the_newest_event_is_published(story: Story) -> Violations:
    """Where no Valkey was lost, each stream has the thread's newest event."""
    for thread in story.threads:
        events, stream = story.events[thread["id"]], story.streams[thread["id"]]
        if events and (not stream or stream[-1].seq != events[-1]["seq"]):
            yield f"the stream of thread {thread['id']} lacks its newest event, {events[-1]['seq']}"


ALWAYS: tuple[Callable[[Story], Violations], ...] = (
    nobody_forgets_a_run,
    tickets_are_true,
    one_run_at_a_time,
    moves_are_legal,
    events_are_numbered,
    events_tell_the_moves,
    steps_and_checkpoints_agree,
    no_message_is_forgotten,
    calls_are_counted,
    streams_repeat_the_events,
    nobody_deadlocks,
    retries_are_made,
)


def what_was_answered_is_true(story: Story, commands: Sequence[Command], *, database_went_away: bool) -> Violations:
    """What a person or customer was told has been done is there, once; nobody was shown an error of ours."""
    replies = {str(delivery["artifact_id"]) for delivery in story.deliveries}
    tickets = {str(ticket["id"]) for ticket in story.tickets}
    messages = Counter(str(message["id"]) for message in story.messages)
    for command in commands:
        answer = command.answer or {}
        result = command.result
        if result == "broken" or (result.startswith("lost") and not database_went_away):
            yield f"a person was shown an error: {command.told()}"
        if "artifact" in answer and answer["artifact"] not in replies:
            yield f"approved and gone: {command.told()}"
        if "ticket" in answer and answer["ticket"] not in tickets:
            yield f"received and gone: {command.told()}"
        if "message" in answer and messages[answer["message"]] != 1:
            yield f"received and there {messages[answer['message']]} times: {command.told()}"


def runs_fail_for_a_known_reason(story: Story, *, database_went_away: bool) -> Violations:
    """No run fails by a fault of ours that no schedule has asked for."""
    for run in story.runs:
        if run["error_code"] == "unexpected" or (run["error_code"] == "database_away" and not database_went_away):
            yield f"run {run['id']} failed: {run['error_code']}"
