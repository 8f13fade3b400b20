"""Words of the operations page about runs, in the language of the request."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from flask_babel import format_number, format_time

from app.httpkit.language import gettext
from app.msgids import msgid
from app.runs.admin_lists import COUNTED_MOST, FAILED_FOR, OVERDUE, RunList
from app.runs.admin_queries import AdminRun, WorkerRow
from app.runs.explain import Sentence
from app.runs.leases import LEASE_S
from app.runs.models import EventType, RunOrigin, RunStatus
from app.runs.queries import StepRow
from app.web import failure_words, run_facts
from app.web.labels import Mark

STATUS = {
    RunStatus.CREATED: Mark(msgid("In the queue"), "wait"),
    RunStatus.RETRYING: Mark(msgid("To go on"), "wait"),
    RunStatus.RUNNING: Mark(msgid("Running"), "run"),
    RunStatus.WAITING_FOR_REVIEW: Mark(msgid("To approve"), "act"),
    RunStatus.WAITING_FOR_ESCALATION: Mark(msgid("Escalated"), "esc"),
    RunStatus.COMPLETED: Mark(msgid("Completed"), "done"),
    RunStatus.FAILED: Mark(msgid("Failed"), "bad"),
    RunStatus.CANCELLED: Mark(msgid("Stopped"), "closed"),
    RunStatus.SUPERSEDED: Mark(msgid("Superseded"), "closed"),
}
_SET_ASIDE = Mark(msgid("Set aside"), "bad")
_STALE = Mark(msgid("Stale"), "bad")
ORIGIN = {
    RunOrigin.TICKET: msgid("A ticket came in"),
    RunOrigin.MESSAGE: msgid("The customer wrote again"),
    RunOrigin.REGENERATE: msgid("Started over by a person"),
    RunOrigin.MANUAL: msgid("Written by a person"),
    RunOrigin.RETRY: msgid("Retried by a person"),
    RunOrigin.TIMED_OUT: msgid("Retried after a time-out"),
    RunOrigin.WORKER_LOST: msgid("Retried after its worker died"),
}
EVENT = {
    EventType.RUN_CREATED: msgid("Run made"),
    EventType.RUN_STARTED: msgid("Taken by a worker"),
    EventType.RUN_RETRYING: msgid("To be tried again"),
    EventType.RUN_NOT_RETRIED: msgid("Not tried again"),
    EventType.STEP_STARTED: msgid("Step begun"),
    EventType.STEP_COMPLETED: msgid("Step done"),
    EventType.STEP_FAILED: msgid("Step failed"),
    EventType.DRAFT_READY: msgid("Draft ready"),
    EventType.REVIEW_REQUESTED: msgid("Handed to a reviewer"),
    EventType.RUN_ESCALATED: msgid("Escalated"),
    EventType.RUN_COMPLETED: msgid("Run completed"),
    EventType.RUN_FAILED: msgid("Run failed"),
    EventType.RUN_CANCELLED: msgid("Run stopped"),
    EventType.RUN_SUPERSEDED: msgid("Run replaced"),
    EventType.REPLY_APPROVED: msgid("Reply approved"),
    EventType.REPLY_RECALLED: msgid("Reply called back"),
    EventType.REPLY_SENT: msgid("Reply sent"),
    EventType.REPLY_FAILED: msgid("Reply not sent"),
    EventType.MESSAGE_RECEIVED: msgid("Customer wrote"),
    EventType.TICKET_CHANGED: msgid("Ticket changed"),
    EventType.TICKET_MOVED: msgid("Ticket moved"),
}


@dataclass(frozen=True, slots=True)
class ListLabel:
    """A list of the page: its name, what it holds, and what an empty one says. A `bad` one is red unless empty."""

    name: str
    about: str
    empty: str
    bad: bool = False


LISTS = {
    RunList.RUNNING: ListLabel(
        msgid("Running"),
        msgid("A worker holds them, by a lease that it renews. Those whose lease has run out are stale."),
        msgid("No run is at work."),
    ),
    RunList.QUEUED: ListLabel(
        msgid("Waiting for a worker"),
        msgid("They start as soon as a worker has a free lane, oldest first."),
        msgid("No run waits for a worker."),
    ),
    RunList.STALE: ListLabel(
        msgid("Stale"),
        msgid("Running without a lease that lasts, or due for more than %(seconds)s seconds and taken by nobody."),
        msgid("No run is stale."),
        bad=True,
    ),
    RunList.SET_ASIDE: ListLabel(
        msgid("Set aside"),
        msgid("Taken out by hand, or because their workers kept dying. Their tickets wait for a person."),
        msgid("No run is set aside."),
        bad=True,
    ),
    RunList.FAILED: ListLabel(
        msgid("Failed lately"),
        msgid("Failed runs of the last %(days)s days, newest first, with those that were retried since."),
        msgid("No run has failed in the last %(days)s days."),
    ),
    RunList.WAITING: ListLabel(
        msgid("Waiting for a person"),
        msgid("Their drafts are to be approved, or their tickets are escalated."),
        msgid("No run waits for a person."),
    ),
}


def about(shown: RunList) -> str:
    """Return what a list holds, in a sentence."""
    return gettext(LISTS[shown].about, seconds=int(OVERDUE.total_seconds()), days=FAILED_FOR.days)


def nothing(shown: RunList) -> str:
    """Return what an empty list says."""
    return gettext(LISTS[shown].empty, days=FAILED_FOR.days)


def amount(count: int) -> str:
    """Return a count in words: beyond what is counted it is that much and more."""
    return f"{format_number(COUNTED_MOST)}+" if count > COUNTED_MOST else str(format_number(count))


def mark(run: AdminRun) -> Mark:
    """Return the word, colour and glyph of a run's state."""
    if run.stale:
        return _STALE
    return _SET_ASIDE if run.set_aside else STATUS[run.status]


def origin(run: AdminRun) -> str:
    """Return why a run was made."""
    return gettext(ORIGIN[RunOrigin(run.origin)])


def step_name(run: AdminRun) -> str:
    """Return which step a run is in or was in last."""
    return failure_words.skill_name(run.skill) if run.skill else ""


def step_of(run: AdminRun) -> str:
    """Return the number of that step, of how many that a run may take."""
    return gettext("step %(number)s of %(most)s", number=run.cur_step, most=run.max_steps)


def process(owner: str | None) -> str:
    """Return the machine and the process of a lease's owner, which is spelled `host:pid:...`."""
    return ":".join((owner or "").split(":")[:2])


def is_silent(worker: WorkerRow) -> bool:
    """Return whether a process should have renewed its leases by now."""
    return worker.renewed_ago > timedelta(seconds=LEASE_S)


def lease(run: AdminRun) -> str:
    """Return what is left of a running run's lease, or how a run that nobody has taken yet stands."""
    if run.lease_left is not None:
        if run.lease_left < timedelta():
            return gettext("ran out %(time)s ago", time=span(-run.lease_left))
        return gettext("%(time)s left", time=span(run.lease_left))
    if run.due_in is None:
        return ""
    if run.due_in > timedelta():
        return gettext("due in %(time)s", time=span(run.due_in))
    return gettext("due for %(time)s", time=span(-run.due_in))


def at(moment: datetime) -> str:
    """Return the local time of day, with its seconds."""
    return str(format_time(moment, "HH:mm:ss"))


def span(duration: timedelta) -> str:
    """Return a length of time, rounded to what matters: 8 s, 3 min, 2 h, 5 d."""
    seconds = int(duration.total_seconds())
    for unit, words in (
        (86_400, msgid("%(n)s d")),
        (3_600, msgid("%(n)s h")),
        (60, msgid("%(n)s min")),
    ):
        if seconds >= 2 * unit:
            return gettext(words, n=seconds // unit)
    return gettext("%(n)s s", n=seconds)


def error(run: AdminRun) -> str:
    """Return why a run failed, in plain words; empty for one that did not."""
    if run.status is not RunStatus.FAILED:
        return ""
    return failure_words.why(run.error_message, run.error_detail)


def sentence(told: Sentence) -> str:
    """Return one sentence of a run's story."""
    values = dict(told.values)
    if "error" in values:
        values["error"] = run_facts.step_error(str(values["error"])).rstrip(".。")  # it ends within a sentence
    return failure_words.filled(told.text, values)


def step_did(step: StepRow) -> str:
    """Return what a step did, in one word."""
    return failure_words.skill_name(step.skill)


def step_error(step: StepRow) -> str:
    """Return what went wrong in a step; empty when nothing did."""
    return run_facts.step_error(step.error_code)


def event(kind: str) -> str:
    """Return what an event says happened."""
    return gettext(EVENT[EventType(kind)])
