"""Sentences about why a run failed and what to do about it, in the language of the request."""

from collections.abc import Mapping
from typing import Any

from app.agent.ports import PLANNING
from app.httpkit.language import gettext
from app.msgids import msgid
from app.review.run_view import RunView, StepView
from app.runs.models import RunStatus
from app.web import labels

ADVICE = {
    "timed_out": msgid("What was found is kept. Try again, or write the reply yourself."),
    "skill_timed_out": msgid("What was found is kept. Try again, or write the reply yourself."),
    "model_timed_out": msgid("The model is slow just now. Try again in a few minutes, or write the reply yourself."),
    "model_unavailable": msgid("Try again in a few minutes. If that does not help, tell an administrator."),
    "step_limit": msgid("Try again with a hint, such as what to look for, or write the reply yourself."),
    "worker_lost": msgid("What was found is kept. Try again."),
    "set_aside": msgid("Write the reply yourself, and tell an administrator."),
}
"""What to do about a run that failed, by its code."""
_SAFE = msgid("The ticket and what was found are safe.")
_ONCE_MORE = msgid("It is tried once more by itself in a moment.")


def skill_name(name: str) -> str:
    """Return what a step does, in one word."""
    if name == PLANNING:
        return gettext("Plan")
    return gettext(labels.SKILL[name]) if name in labels.SKILL else name


def failure_words(run: RunView) -> str:
    """Return why a run failed."""
    return why(run.error_message, run.error_detail)


def why(message: str | None, detail: Mapping[str, Any] | None) -> str:
    """Return why a run failed, from what stands in its row."""
    return filled(message, detail or {}) if message else gettext("Something went wrong on our side.")


def filled(message: str, values: Mapping[str, Any]) -> str:
    """Return a msgid's translation with its places filled, names of steps in the language of the page.

    An old row may lack a value, and shows its words as they are.
    """
    try:
        return gettext(message, **_in_words(values))
    except (KeyError, ValueError, TypeError):
        return gettext(message)


def advice(run: RunView) -> str:
    """Return what becomes of a run that failed, or what a person can do about it."""
    if run.retries_itself:
        return gettext(_ONCE_MORE)
    return gettext(ADVICE.get(run.error_code or "", _SAFE))


def is_told_by(step: StepView) -> bool:
    """Return whether a step's own words say why its run failed: it was cut off with it."""
    return step.state == "bad" and not step.error_message


def interrupted(error_code: str | None) -> str:
    """Return what is said of a step that was ended with its run, by its code."""
    if error_code == RunStatus.RETRYING:
        return gettext("Interrupted because its worker stopped; another one goes on.")
    return gettext("Stopped; what was done before is kept.")


def _in_words(detail: Mapping[str, Any]) -> dict[str, object]:
    """Return the values of a text with the names of its steps in the language of the page."""
    words = dict(detail)
    if "skill" in words:
        words["skill"] = skill_name(str(words["skill"]))
    if "loop" in words:
        words["loop"] = " → ".join(map(skill_name, words["loop"].split(" → ")))
    return words
