"""Turns errors into answers in plain words: a page, a toast for htmx, a problem document (RFC 9457) for the API."""

import logging

from flask import Flask, Response, jsonify, render_template, request
from flask_wtf.csrf import CSRFError
from psycopg.errors import LockNotAvailable
from redis import RedisError
from sqlalchemy.exc import OperationalError
from werkzeug.exceptions import HTTPException, InternalServerError
from werkzeug.wrappers import Response as BaseResponse

from app.errors import AppError
from app.httpkit.auth import SignedOut, current_staff_or_none, do_without_staff, refuse_signed_out
from app.httpkit.htmx import answer, is_htmx
from app.httpkit.language import gettext, say
from app.httpkit.tracing import request_id
from app.msgids import msgid

log = logging.getLogger(__name__)

API = "/api/"
_WORDS: dict[int, tuple[str, str]] = {
    400: ("bad_request", msgid("The request could not be understood.")),
    401: ("signed_out", msgid("Your session has ended. Sign in again.")),
    403: ("forbidden", msgid("You may not do this.")),
    404: ("not_found", msgid("There is nothing at this address.")),
    405: ("method_not_allowed", msgid("This address does not work that way.")),
    409: ("conflict", msgid("Something changed in the meantime. Nothing was saved.")),
    413: ("too_large", msgid("That is too large to be taken.")),
    415: ("unsupported_media_type", msgid("This kind of content is not taken here.")),
    429: ("too_many_requests", msgid("Too many requests. Wait a moment.")),
    500: ("internal", msgid("Something went wrong on our side. Nothing was sent; what was saved is safe.")),
    503: ("unavailable", msgid("A part of the system does not answer. Try again in a moment.")),
}
_BUSY = msgid("Somebody else is changing this right now. Nothing was saved; try again in a moment.")
_TITLES: dict[int, str] = {
    400: msgid("This did not work"),
    401: msgid("Please sign in"),
    403: msgid("Not for your account"),
    404: msgid("Not found"),
    405: msgid("This did not work"),
    409: msgid("Someone was faster"),
    413: msgid("Too large"),
    422: msgid("Please check your input"),
    429: msgid("Too often"),
    500: msgid("Something went wrong"),
    503: msgid("Not available right now"),
}


def init_errors(app: Flask) -> None:
    """Answer every error in words, whichever way it was raised."""
    app.register_error_handler(AppError, _app_error)
    app.register_error_handler(CSRFError, _csrf_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(OperationalError, _part_away)
    app.register_error_handler(RedisError, _part_away)
    app.register_error_handler(Exception, _unexpected)


def error_answer(
    status: int,
    code: str,
    words: str,
    fields: dict[str, str] | None = None,
    facts: dict[str, object] | None = None,
) -> BaseResponse:
    """Return the answer to an error for whoever asked: API, htmx or a browser that wants a page.

    `facts` are further members of the API's problem document.
    """
    if request.path.startswith(API):
        return _problem(status, code, words, fields or {}, facts or {})
    if is_htmx():
        return answer(render_template("errors/_toast.html", status=status, words=words), status)
    title = gettext(_TITLES.get(status, _TITLES[500] if status >= 500 else _TITLES[400]))
    # 403 comes from our own check of roles: who was refused is known, so is the database, and the rail leads away.
    template = "errors/inside.html" if status == 403 and current_staff_or_none() else "errors/page.html"
    page = render_template(template, status=status, title=title, words=words, number=request_id())
    return answer(page, status)


def _app_error(error: AppError) -> BaseResponse:
    if isinstance(error, SignedOut) and not is_htmx() and not request.path.startswith(API):
        return _signed_out(error)
    if error.status >= 500:
        log.error("%s: %s", error.code, error)
    words = say(error)
    return error_answer(error.status, error.code, words, {error.field: words} if error.field else None)


def _signed_out(error: SignedOut) -> BaseResponse:
    try:
        return refuse_signed_out()
    except SignedOut:
        return error_answer(error.status, error.code, say(error))


def _csrf_error(_error: CSRFError) -> BaseResponse:
    words = gettext("This page is no longer valid. Reload it and try again.")
    return error_answer(400, "csrf", words)


def _http_error(error: HTTPException) -> BaseResponse:
    status = error.code or 500
    if status < 400:
        return error.get_response()
    if isinstance(error, InternalServerError) and isinstance(error.original_exception, OperationalError | RedisError):
        return _part_away(error.original_exception)  # raised while another error was put into words
    code, words = _WORDS.get(status, _WORDS[500 if status >= 500 else 400])
    response = error_answer(status, code, gettext(words))
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def _part_away(error: OperationalError | RedisError) -> BaseResponse:
    log.error("a service is away: %s on %s", type(error).__name__, request.path)
    do_without_staff()
    code, words = _WORDS[503]
    if isinstance(error, OperationalError) and isinstance(error.orig, LockNotAvailable):
        code, words = "busy", _BUSY
    return error_answer(503, code, gettext(words))


def _unexpected(error: Exception) -> BaseResponse:
    log.exception("unexpected error on %s %s", request.method, request.path, exc_info=error)
    do_without_staff()
    code, words = _WORDS[500]
    return error_answer(500, code, gettext(words))


def _problem(status: int, code: str, words: str, fields: dict[str, str], facts: dict[str, object]) -> Response:
    body: dict[str, object] = {
        "type": f"urn:draftdesk:error:{code}",
        "title": code.replace("_", " "),
        "status": status,
        "detail": words,
        "request_id": request_id(),
    }
    body |= facts
    if fields:
        body["errors"] = [{"field": name, "message": message} for name, message in fields.items()]
    response = jsonify(body)
    response.status_code = status
    response.mimetype = "application/problem+json"
    return response
