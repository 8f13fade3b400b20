"""What happened to a run, and what will happen next, in sentences: for `flask runs explain` and the operations page.

The past is told from the run's events, what comes next from its row (see `outlook.py`). A sentence is an English msgid
and its values (names and whole numbers), so that a page can say it in its own language.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import NotFound
from app.ids import parse_id
from app.msgids import msgid
from app.runs.models import Event, EventType, Run, RunOrigin, RunStatus
from app.runs.outlook import Told, Values, what_comes_next
from app.staff.queries import names


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. `at` is when it happened; None means that it is so now, or to come."""

    text: str
    values: Values = field(default_factory=dict)
    at: datetime | None = None

    def __str__(self) -> str:
        return self.text % self.values if self.values else self.text


_MADE = {
    RunOrigin.TICKET: msgid("It was made because a ticket came in."),
    RunOrigin.MESSAGE: msgid("It was made because the customer wrote again."),
    RunOrigin.REGENERATE: msgid("It was made because another draft was asked for."),
    RunOrigin.MANUAL: msgid("It was made because a person writes the reply without the AI."),
    RunOrigin.RETRY: msgid("It was made because the run before it was retried."),
    RunOrigin.TIMED_OUT: msgid("It was made by itself because the run before it took too long."),
    RunOrigin.WORKER_LOST: msgid("It was made by itself because the worker of the run before it died."),
}
_FAILED: Mapping[str | None, str] = {
    "policy": msgid("It is left to a person to retry it, as the settings say."),
    "not_retry_safe": msgid("It is not retried by itself: a step that it had begun must not be begun twice."),
    "max_deaths": msgid("Its workers had died %(deaths)s times, so it went to a person."),
    "by_hand": msgid("%(by)s set it aside."),
}
_RETRIED: Mapping[str | None, str] = {
    "policy": msgid("A new run was made to go on with its work, as the settings say."),
    "newer_message": msgid("A new run was made to begin afresh: the customer had written meanwhile."),
    None: msgid("It was to be retried by itself."),
}
_NOT_RETRIED = {
    "ticket_done": msgid("It was not retried after all: its ticket was done by then."),
    "newer_run": msgid("It was not retried after all: another run had taken over by then."),
}
_REPLACED = {
    "regenerated": msgid("%(by)s asked for another draft, so a new run took its place."),
    "manual": msgid("%(by)s began to write the reply without the AI, so that took its place."),
    "customer_message": msgid("The customer wrote again, so a new run took its place."),
}
_BEGUN = {
    "newer_message": msgid("It began afresh: the customer had written since the run before it."),
    "checkpoint_unreadable": msgid("It began afresh: what the run before it had found could not be read."),
}
_PLAIN = {
    EventType.DRAFT_READY: msgid("Its draft was ready."),
    EventType.REPLY_RECALLED: msgid("The reply was called back before it left."),
    EventType.REPLY_SENT: msgid("The reply was sent."),
    EventType.REPLY_FAILED: msgid("The reply was not sent."),
}


def explain(session: Session, run_id: UUID) -> tuple[Sentence, ...]:
    """Return what happened to a run, in order, and then what will happen next. Raises NotFound."""
    run = session.get(Run, run_id)
    if run is None:
        raise NotFound("There is no such run.")
    events = session.scalars(select(Event).where(Event.run_id == run_id).order_by(Event.seq)).all()
    story = _Story(run, [(EventType(event.type), event.payload) for event in events], session)
    past = [
        Sentence(text, values, event.created_at)
        for event in events
        for text, values in story.told(EventType(event.type), event.payload)
    ]
    return (*past, *(Sentence(text, values) for text, values in what_comes_next(session, run, story.types)))


class _Story:
    """Tells the events of one run."""

    def __init__(self, run: Run, events: list[tuple[EventType, dict[str, Any]]], session: Session) -> None:
        self.types = {type_ for type_, _ in events}
        self._run = run
        people = {parse_id(str(facts["by"])) for _, facts in events if facts.get("by")}
        self._names = names(session, {person for person in people if person is not None})
        step_ends = (EventType.STEP_COMPLETED, EventType.STEP_FAILED)
        self._ended_steps = {facts["step"] for type_, facts in events if type_ in step_ends}

    def _by(self, facts: Mapping[str, Any]) -> str:
        """Return who did it: a person by name, a source by that of its token, or a command."""
        person = parse_id(str(facts.get("by")))
        return (
            self._names.get(person, str(person)) if person else str(facts.get("token") or facts.get("command") or "?")
        )

    def _filled(self, text: str, facts: Mapping[str, Any]) -> tuple[str, Values]:
        """Return a text with the values that its places ask for."""
        values = {"by": self._by(facts), "deaths": facts.get("deaths", 0)}
        return text, {name: value for name, value in values.items() if f"%({name})" in text}

    def told(self, type_: EventType, facts: Mapping[str, Any]) -> Told:
        """Yield what to say of one event; some say nothing that another one does not."""
        if type_ in _PLAIN:
            yield _PLAIN[type_], {}
        elif tell := _TOLD.get(type_):
            yield from tell(self, facts)

    def created(self, _: Mapping[str, Any]) -> Told:
        run = self._run
        yield _MADE[RunOrigin(run.origin)], {}
        if run.retry_from is not None:
            yield msgid("The run before it is %(run)s."), {"run": str(run.retry_from)}
        if run.not_before is not None:
            waits = round((run.not_before - run.created_at).total_seconds())
            yield (
                msgid("No worker was to take it for %(seconds)s s, so that further messages could join."),
                {"seconds": waits},
            )

    def started(self, facts: Mapping[str, Any]) -> Told:
        if facts.get("planner") == "rule":
            yield msgid("A worker took it, to go by rules, without a model."), {}
        else:
            yield msgid("A worker took it."), {}

    def retrying(self, facts: Mapping[str, Any]) -> Told:
        if "attempt" in facts:
            yield msgid("It is attempt number %(attempt)s."), {"attempt": facts["attempt"]}
        else:
            yield msgid("Its worker was told to stop and handed it back for another one to go on with."), {}

    def not_retried(self, facts: Mapping[str, Any]) -> Told:
        yield _NOT_RETRIED[facts["reason"]], {}

    def step_started(self, facts: Mapping[str, Any]) -> Told:
        if "resumed" in facts:
            yield self._resumed(facts["step"], facts["resumed"]["from_step"])
        if facts.get("fresh") in _BEGUN:
            yield _BEGUN[facts["fresh"]], {}
        if facts["step"] not in self._ended_steps:
            values = {"step": facts["step"], "skill": facts["skill"]}
            if self._run.status == RunStatus.RUNNING and facts["step"] == self._run.cur_step:
                yield msgid("Step %(step)s, %(skill)s, was begun."), values
            else:
                yield msgid("Step %(step)s, %(skill)s, was begun and cut off."), values

    def _resumed(self, first: int, finished: int) -> tuple[str, Values]:
        """Return after which step it went on: of its own, or of the run before it; each run counts from one."""
        if finished < first and finished in self._ended_steps:
            return msgid("It went on after its step %(step)s, which was finished."), {"step": finished}
        return msgid("It went on after step %(step)s of the run before it, which was finished."), {"step": finished}

    def step_completed(self, facts: Mapping[str, Any]) -> Told:
        yield msgid("Step %(step)s, %(skill)s, was done."), {"step": facts["step"], "skill": facts["skill"]}

    def step_failed(self, facts: Mapping[str, Any]) -> Told:
        values = {"step": facts["step"], "skill": facts["skill"], "error": facts["error"]}
        yield msgid("Step %(step)s, %(skill)s, failed: %(error)s."), values

    def escalated(self, facts: Mapping[str, Any]) -> Told:
        if "by" in facts:
            yield msgid("%(by)s handed it to somebody who knows more."), {"by": self._by(facts)}
        else:
            yield msgid("The AI handed it to a person, because:"), {}
            yield facts["reason"], {}

    def approved(self, facts: Mapping[str, Any]) -> Told:
        yield msgid("%(by)s approved the reply."), {"by": self._by(facts)}

    def failed(self, facts: Mapping[str, Any]) -> Told:
        yield msgid("It failed, because:"), {}
        if self._run.error_message:
            yield self._run.error_message, self._run.error_detail or {}
        yield msgid("Its error code is %(code)s."), {"code": facts["code"]}
        decided = (_RETRIED if facts.get("retry") else _FAILED).get(facts.get("reason"))
        if decided is not None:
            yield self._filled(decided, facts)

    def cancelled(self, facts: Mapping[str, Any]) -> Told:
        if str(facts.get("reason", "")).startswith("ticket_"):
            yield msgid("%(by)s ended the work on its ticket, which stopped it."), {"by": self._by(facts)}
        else:
            yield msgid("%(by)s stopped it."), {"by": self._by(facts)}

    def superseded(self, facts: Mapping[str, Any]) -> Told:
        if facts.get("reason") in _REPLACED:
            yield self._filled(_REPLACED[facts["reason"]], facts)


_TOLD: Mapping[EventType, Callable[[_Story, Mapping[str, Any]], Told]] = {
    EventType.RUN_CREATED: _Story.created,
    EventType.RUN_STARTED: _Story.started,
    EventType.RUN_RETRYING: _Story.retrying,
    EventType.RUN_NOT_RETRIED: _Story.not_retried,
    EventType.STEP_STARTED: _Story.step_started,
    EventType.STEP_COMPLETED: _Story.step_completed,
    EventType.STEP_FAILED: _Story.step_failed,
    EventType.RUN_ESCALATED: _Story.escalated,
    EventType.REPLY_APPROVED: _Story.approved,
    EventType.RUN_FAILED: _Story.failed,
    EventType.RUN_CANCELLED: _Story.cancelled,
    EventType.RUN_SUPERSEDED: _Story.superseded,
}
