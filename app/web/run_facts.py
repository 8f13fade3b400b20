"""The small facts of a run's events in the words of the page: those that the run's story does not tell, and no ids."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from flask_babel import ngettext

from app.httpkit.language import gettext
from app.ids import parse_id
from app.runs.admin_queries import EventRow
from app.runs.models import RunStatus
from app.web import failure_words, labels, ticket_words

_BETWEEN = " · "


def people(events: tuple[EventRow, ...]) -> set[UUID]:
    """Return the ids of those who did what the events tell."""
    ids = (parse_id(str(row.payload.get("by", ""))) for row in events)
    return {staff_id for staff_id in ids if staff_id is not None}


def facts(row: EventRow, names: Mapping[UUID, str]) -> str:
    """Return the facts of an event in one line: who did it, by `names`, which step it is, what came of it."""
    told = row.payload
    skill, error = told.get("skill"), told.get("error")
    parts = [
        _who(told, names),
        failure_words.skill_name(str(skill)) if skill else "",
        step_error(str(error)) if error else "",
        _words(told, _OF_EVENT),
        _words(told.get("facts") or {}, _OF_STEP),
    ]
    return _BETWEEN.join(filter(None, parts))


def step_error(code: str | None) -> str:
    """Return what went wrong in a step, by its code; empty when nothing did."""
    if code is None:
        return ""
    if code in ticket_words.STEP_ERROR:
        return gettext(ticket_words.STEP_ERROR[code])
    if code == "escalated":
        return gettext("AI handed this ticket to a person")
    if code in (RunStatus.CANCELLED, RunStatus.SUPERSEDED, RunStatus.RETRYING):
        return failure_words.interrupted(code)
    return gettext("It was cut off when the run failed.")


def _who(told: Mapping[str, Any], names: Mapping[UUID, str]) -> str:
    """Return the person by name, else the token or the command; empty when it went by itself."""
    staff_id = parse_id(str(told.get("by", "")))
    name = names.get(staff_id) if staff_id else told.get("token") or told.get("command")
    return str(name) if name else ""


def _words(told: Mapping[str, Any], known: Mapping[str, Callable[[Any], str]]) -> str:
    return _BETWEEN.join(filter(None, (word(told[name]) for name, word in known.items() if name in told)))


def _of(table: Mapping[Any, str]) -> Callable[[Any], str]:
    """Return the words of a value by a table of msgids; a value of an older version has none."""
    return lambda value: gettext(table[value]) if value in table else ""


_OF_EVENT: Mapping[str, Callable[[Any], str]] = {
    "edited": lambda edited: gettext("changed by hand") if edited else "",
}
_OF_STEP: Mapping[str, Callable[[Any], str]] = {
    "category": _of(labels.CATEGORY),
    "priority": _of(labels.PRIORITY),
    "found": lambda count: str(ngettext("%(num)s passage", "%(num)s passages", count)),
    "outcome": _of(ticket_words.OUTCOME),
    "keyword_only": lambda only: gettext("by words only") if only else "",
    "titles": lambda titles: gettext(", ").join(titles),
    "origin": _of(ticket_words.ORIGIN),
    "characters": lambda count: str(ngettext("%(num)s character", "%(num)s characters", count)),
    "citations": lambda count: str(ngettext("%(num)s source", "%(num)s sources", count)),
    "confidence": lambda share: gettext("%(percent)s%% sure", percent=round(share * 100)),
}
