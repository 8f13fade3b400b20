"""Says in the language of the request who was first."""

from datetime import datetime

from flask_babel import to_user_timezone

from app.clock import now
from app.httpkit.language import clock, day, gettext
from app.review.moved import Told


def say_told(told: Told) -> str:
    """Return a sentence about a run or a ticket that moved."""
    return gettext(told.text, who=told.who, time=_moment(told.at))


def _moment(at: datetime) -> str:
    """Return the local time of day, with its day in front unless that is today."""
    today = to_user_timezone(at).date() == to_user_timezone(now()).date()
    return clock(at) if today else f"{day(at)} {clock(at)}"
