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
    if not run.error_message:
        return gettext("Something went wrong on our side.")
    return gettext(run.error_message, **_in_words(run.error_detail or {}))


def advice(run: RunView) -> str:
    """Return what becomes of a run that failed, or what a person can do about it."""
    if run.retries_itself:
        return gettext(_ONCE_MORE)
    return gettext(ADVICE.get(run.error_code or "", _SAFE))


def is_told_by(step: StepView) -> bool:
    """Return whether a step's own words say why its run failed: it was cut off with it."""
    return step.state == "bad" and not step.error_message


def interrupted(step: StepView) -> str:
    """Return what is said of a step that was ended with its run."""
    if step.error_code == RunStatus.RETRYING:
        return gettext("Interrupted because its worker stopped; another one goes on.")
    return gettext("Stopped; what was done before is kept.")


def _in_words(detail: Mapping[str, Any]) -> dict[str, object]:
    """Return the facts of a failure with the names of its steps in the language of the page."""
    words = dict(detail)
    if "skill" in words:
        words["skill"] = skill_name(words["skill"])
    if "loop" in words:
        words["loop"] = " → ".join(map(skill_name, words["loop"].split(" → ")))
    return words
