"""Sentences about what happened on a ticket, in the language of the request."""

import re
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import pairwise

from flask_babel import get_timezone, ngettext, to_user_timezone
from markupsafe import Markup

from app.agent.values import Classification, SearchResult, Sufficiency
from app.clock import now
from app.delivery.models import DeliveryState
from app.guard.lint import FindingKind
from app.httpkit.language import clock, day, gettext, seconds
from app.msgids import msgid
from app.review.inbox_state import LiveState
from app.review.run_view import DraftView, MoveView, RunView, StepView
from app.review.ticket_view import TicketPage
from app.runs.models import RunOrigin, RunStatus
from app.tickets.lifecycle import MOVES
from app.tickets.models import TicketStatus
from app.web import failure_words, labels
from app.web.browser_findings import BrowserFinding

_NOW = {
    "classify_ticket": msgid("Reading the ticket and finding its class"),
    "search_knowledge": msgid("Searching the knowledge base, by meaning and by words"),
    "draft_reply": msgid("Writing from the passages found, sentence by sentence"),
}
OUTCOME = {
    Sufficiency.SUFFICIENT: msgid("enough to answer"),
    Sufficiency.WEAK: msgid("barely enough to answer"),
    Sufficiency.INSUFFICIENT: msgid("not enough to answer"),
}
FINDING = {
    FindingKind.SENSITIVE: msgid("Wording"),
    FindingKind.PROMISE: msgid("Over-promise"),
    FindingKind.PERSONAL_DATA: msgid("Personal data"),
    FindingKind.LINK: msgid("Links"),
}
ADVICE = {
    FindingKind.SENSITIVE: msgid("Customers must not read this. Write it differently."),
    FindingKind.PROMISE: msgid("We may not be able to keep this. Say what the rules say."),
    FindingKind.PERSONAL_DATA: msgid("It may be another person's, and it does not belong in a reply."),
    FindingKind.LINK: msgid("Only links from a help document may be sent, and no HTML code."),
}
STEP_ERROR = {
    "unknown_skill": msgid("The model asked for something that the agent can't do."),
    "wrong_phase": msgid("The model asked for a step out of turn."),
    "forbidden_level": msgid("The model asked for something that only a person may do."),
    "forbidden_parameter": msgid("The model tried to pass on a credential, which no step takes."),
    "bad_arguments": msgid("The model asked for a step in a form that can't be used."),
    "model_output_cut": msgid("The model's answer was cut off at its length limit."),
    "model_output_filtered": msgid("The model service withheld the answer."),
    "model_output_not_json": msgid("The model did not answer in the form asked for."),
    "model_output_wrong_shape": msgid("The model's answer leaves out or misstates what was asked for."),
    "model_output_too_long": msgid("The model's answer is far too long."),
    "draft_empty": msgid("The model wrote no reply."),
    "draft_too_long": msgid("The model's reply is too long."),
}
"""What went wrong in a step, by its code; the step's own message is for the planner."""
_STEP_FAILED = msgid("This step failed.")
ORIGIN = {
    "model": msgid("Written by AI"),
    "extract": msgid("Offline excerpt"),
    "person": msgid("Written by a person"),
}

_WAYS_ON = {
    TicketStatus.PENDING: ("refresh", msgid("Reopen")),
    TicketStatus.RESOLVED: ("noreply", msgid("Resolve without a reply")),
    TicketStatus.CLOSED: ("lock", msgid("Close")),
    TicketStatus.SPAM: ("trash", msgid("Mark as spam")),
}
_MOVED = {
    TicketStatus.PENDING: msgid("%(who)s reopened the ticket"),
    TicketStatus.RESOLVED: msgid("%(who)s resolved the ticket without a reply"),
    TicketStatus.CLOSED: msgid("%(who)s closed the ticket"),
    TicketStatus.SPAM: msgid("%(who)s marked the ticket as spam"),
}
_AT_WORK = frozenset({LiveState.CLASSIFYING, LiveState.SEARCHING, LiveState.DRAFTING})
_METER_WIDTH = 40
_WORTH_A_FIGURE = timedelta(seconds=0.1)


def mark(page: TicketPage) -> labels.Mark:
    """Return how the ticket stands, as the list says it."""
    return labels.STATE[shown_state(page)]


def shown_state(page: TicketPage) -> LiveState:
    """Return how the ticket stands, without the step that is at work: the page says that below."""
    return LiveState.THINKING if page.state in _AT_WORK else page.state


def ways_on(page: TicketPage) -> list[tuple[TicketStatus, str, str]]:
    """Return where a person may move the ticket to, each with its icon and its name (a msgid)."""
    possible = MOVES[TicketStatus(page.status)] - ({TicketStatus.PENDING} if page.open else set())
    return [(target, icon, word) for target, (icon, word) in _WAYS_ON.items() if target in possible]


def past_kind(status: str) -> str:
    """Return the colour role of an earlier ticket."""
    return {TicketStatus.RESOLVED: "done", TicketStatus.CLOSED: "closed", TicketStatus.SPAM: "closed"}.get(
        TicketStatus(status), "act"
    )


def moment(at: datetime) -> str:
    """Return a time as people say it: today with the hour, else the day too."""
    is_today = to_user_timezone(at).date() == to_user_timezone(now()).date()
    return gettext("today %(time)s", time=clock(at)) if is_today else f"{day(at)} {clock(at)}"


def time_zone() -> str:
    """Return the name of the page's time zone, for times that the browser writes."""
    return str(get_timezone())


def paragraphs(body: str) -> list[str]:
    """Return a message cut at its blank lines, which the page shows as space."""
    return [part for part in re.split(r"\n[^\S\n]*\n\s*", body) if part]


def meter(share: float) -> Markup:
    """Return a small bar for a share of 0 to 1."""
    width = round(_METER_WIDTH * min(1.0, max(0.0, share)))
    return Markup(
        '<svg class="meter" width="{}" height="4" aria-hidden="true"><rect width="{}" height="4" rx="2"/></svg>'
    ).format(_METER_WIDTH, width)


def reasoning(found: Classification) -> str:
    """Return why a ticket was given its class; the offline classifier's words are translated."""
    return gettext(found.reasoning)


def ahead(run: RunView) -> list[str]:
    """Return the names (msgids) of the skills that a run at work has still to come to."""
    begun = {step.skill for step in run.steps}
    last = max((place for place, skill in enumerate(labels.SKILL) if skill in begun), default=-1)
    return [word for place, word in enumerate(labels.SKILL.values()) if place > last]


def sentences(draft: DraftView | None) -> list[dict[str, object]]:
    """Return the sentences of a draft for the editor."""
    return [asdict(sentence) for sentence in draft.sentences] if draft else []


def as_data(findings: Iterable[BrowserFinding]) -> list[dict[str, object]]:
    """Return findings for the editor."""
    return [asdict(finding) for finding in findings]


def maker(run: RunView) -> str:
    """Return what a draft was made by: the model's name, or offline mode."""
    return run.model or gettext("Offline mode")


def steps_done(run: RunView) -> str:
    """Return the names of the steps that a run has done itself, in their order, each once."""
    names = dict.fromkeys(skill_name(step) for step in run.steps if step.skill in labels.SKILL and step.state == "done")
    return gettext(", ").join(names)


def took(run: RunView) -> str:
    """Return how long the steps of a run took; empty when that is too short to be worth a figure."""
    return lasted(run.worked) if run.worked else ""


def lasted(duration: timedelta) -> str:
    """Return how long something took; empty when that is too short to be worth a figure."""
    return seconds(duration) if duration >= _WORTH_A_FIGURE else ""


def escalation(page: TicketPage) -> str:
    """Return why a ticket was escalated; a person's own words stay as they are."""
    return gettext(page.escalation_reason) if page.escalation_reason else ""


def escalated_by(page: TicketPage) -> str | None:
    """Return who handed the ticket on with its newest run; None when the agent did, which never has a draft to escalate
    with, or when an earlier run brought it."""
    run = page.run
    if run is None:
        return None
    escalated = run.status == RunStatus.WAITING_FOR_ESCALATION and bool(run.draft or run.manual)
    return run.moved_by if escalated or run.is_set_aside else None


def skill_name(step: StepView) -> str:
    """Return what a step does, in one word."""
    return failure_words.skill_name(step.skill)


def step_words(run: RunView, step: StepView) -> str:
    """Return one sentence about a step: what it is doing, what came out, or what went wrong."""
    match step.state:
        case "now":
            return gettext(_NOW[step.skill]) if step.skill in _NOW else ""
        case "stopped":
            return failure_words.interrupted(step.error_code)
        case "bad":
            return _step_error(run, step)
    if step.classification is not None:
        return _class_words(step)
    if step.search is not None:
        return _search_words(step.search)
    return _draft_words(run) if step.skill == "draft_reply" else ""


def _step_error(run: RunView, step: StepView) -> str:
    if step.error_code == "escalated" and step.error_message:
        return gettext(step.error_message)  # the reason, a msgid
    if step.error_message:
        return gettext(STEP_ERROR.get(step.error_code or "", _STEP_FAILED))
    return failure_words.failure_words(run)


def _class_words(step: StepView) -> str:
    found = step.classification
    if found is None:
        return ""
    return gettext(
        "%(category)s, %(priority)s, %(percent)s%% sure",
        category=gettext(labels.CATEGORY[found.category]),
        priority=gettext(labels.PRIORITY[found.priority]),
        percent=round(found.confidence * 100),
    )


def _search_words(found: SearchResult) -> str:
    outcome = gettext(OUTCOME[found.verdict.outcome])
    count = len(found.passages)
    words = str(
        ngettext("%(num)d passage found, %(outcome)s", "%(num)d passages found, %(outcome)s", count, outcome=outcome)
    )
    return f"{words} {gettext('(by words only)')}" if found.keyword_only else words


def _draft_words(run: RunView) -> str:
    if run.draft is None:
        return ""
    draft = run.draft.draft
    return gettext(
        "Sentences: %(sentences)s, sources cited: %(sources)s",
        sentences=len(run.draft.sentences),
        sources=len(draft.citations),
    )


def run_words(page: TicketPage, run: RunView) -> str:
    """Return one line about a run that is not at work any more."""
    after = next((later for before, later in pairwise(page.runs) if before is run), None)
    if run.status == RunStatus.FAILED:
        told = gettext("AI could not finish: %(why)s", why=failure_words.failure_words(run))
        by_itself = after is not None and after.origin in (RunOrigin.TIMED_OUT, RunOrigin.WORKER_LOST)
        return " ".join((told, gettext("It was tried once more by itself."))) if by_itself else told
    if run.ended_with:
        return moved(run.ended_with)
    if run.status == RunStatus.CANCELLED:
        return _by(run, msgid("%(who)s stopped the draft"), msgid("The draft was stopped"))
    if run.status == RunStatus.SUPERSEDED:
        return _gave_way(run, after)
    if run.reply and run.reply.state == DeliveryState.RECALLED:
        return gettext("%(who)s approved a reply; it was taken back before it left", who=run.reply.by or "–")
    if run.manual:
        who = run.started_by
        return gettext("%(who)s writes without AI", who=who) if who else gettext("Written without AI")
    if run.draft is None:
        reason = page.escalation_reason if run is page.run else None
        return gettext(reason) if reason else gettext("AI handed this ticket to a person")
    if run.draft.draft.origin == "extract":
        return gettext("Draft made offline; sources: %(count)s", count=len(run.draft.draft.citations))
    return gettext("AI made a draft; sources: %(count)s", count=len(run.draft.draft.citations))


def _gave_way(run: RunView, after: RunView | None) -> str:
    if after and after.origin == RunOrigin.MESSAGE:
        return gettext("The customer wrote again; this draft was set aside")
    if after and after.manual:
        return _by(run, msgid("%(who)s chose to write the reply"), msgid("A person chose to write the reply"))
    return _by(run, msgid("%(who)s started over; this draft was set aside"), msgid("This draft was set aside"))


def moved(move: MoveView) -> str:
    """Return what somebody made of the ticket."""
    return gettext(_MOVED[move.to], who=move.who or "–")


def _by(run: RunView, named: str, plain: str) -> str:
    return gettext(named, who=run.moved_by) if run.moved_by else gettext(plain)
