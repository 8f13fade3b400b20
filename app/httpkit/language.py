"""Language and time zone of a request, and the filters that turn times into words."""

from datetime import datetime, timedelta

from babel.dates import format_skeleton, format_timedelta
from flask import Flask, request
from flask_babel import Babel, format_datetime, format_time, get_locale, to_user_timezone
from flask_babel import gettext as babel_gettext

from app.clock import now
from app.errors import AppError
from app.httpkit.auth import current_staff_or_none
from app.httpkit.container import container
from app.settings import ROOT
from app.staff.models import LOCALES

HTML_LANG = {"zh": "zh-CN", "en": "en"}
COOKIE = "locale"
_CATALOGUE = ROOT / "app" / "web" / "translations"


def gettext(text: str, **values: object) -> str:
    """Return the translation of a msgid with its `%(name)s` places filled."""
    return str(babel_gettext(text, **values))


def init_language(app: Flask, *, time_zone: str) -> None:
    """Set up Flask-Babel, its selectors and the filters `ago`, `when`, `day`, `clock` and `seconds`."""
    Babel(
        app,
        default_locale="zh",
        default_timezone=time_zone,
        default_translation_directories=str(_CATALOGUE),
        locale_selector=select_locale,
    )
    app.jinja_env.filters.update(ago=ago, when=when, day=day, clock=clock, seconds=seconds)
    app.jinja_env.globals.update(html_lang=html_lang, locales=LOCALES)


def select_locale() -> str:
    """Return the language of this request: chosen by the person or in this browser, else accepted, else ours."""
    staff = current_staff_or_none()
    for choice in (staff.locale if staff else None, request.cookies.get(COOKIE)):
        if choice in LOCALES:
            return choice
    return request.accept_languages.best_match(LOCALES) or container().settings.default_locale


def html_lang() -> str:
    """Return the value of the page's `lang` attribute."""
    locale = get_locale()
    return HTML_LANG[locale.language if locale else "zh"]


def say(error: AppError) -> str:
    """Return an error's words in the language of the request."""
    return gettext(error.message, **error.values)


def ago(moment: datetime) -> str:
    """Return how long ago `moment` was: minutes and hours within a day, a date beyond it.

    `static/js/app.js` keeps the words up to date in the browser by the same rule.
    """
    minutes = int((now() - moment).total_seconds() // 60)
    if minutes < 1:
        return gettext("just now")
    if minutes < 60:
        return _amount(timedelta(minutes=minutes))
    if minutes < 24 * 60:
        return _amount(timedelta(hours=minutes // 60))
    return day(moment)


def _amount(duration: timedelta) -> str:
    return format_timedelta(duration, threshold=1, format="short", locale=get_locale())


def day(moment: datetime) -> str:
    """Return the local month and day, for example Nov 26."""
    return str(format_skeleton("MMMd", to_user_timezone(moment), locale=get_locale()))


def when(moment: datetime) -> str:
    """Return the full local date and time."""
    return str(format_datetime(moment, "medium"))


def clock(moment: datetime) -> str:
    """Return the local time of day, hours and minutes."""
    return str(format_time(moment, "HH:mm"))


def seconds(duration: timedelta | float) -> str:
    """Return a duration in seconds with one decimal, for example 2.4 s."""
    value = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return gettext("%(seconds)s s", seconds=f"{value:.1f}")
