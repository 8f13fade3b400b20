"""What every API request passes: the bearer token, the limits of the body, errors as problem documents."""

from typing import Any, cast

import orjson
from flask import Blueprint, Response, g, jsonify, request
from pydantic import BaseModel
from werkzeug.exceptions import BadRequest, UnsupportedMediaType
from werkzeug.wrappers import Response as BaseResponse

from app.api.shapes import MovedShape
from app.errors import AppError
from app.httpkit.container import container
from app.httpkit.errors import error_answer
from app.httpkit.language import gettext, say
from app.httpkit.moved import say_told
from app.intake.fields import InvalidFields
from app.review.moved import who_moved
from app.runs.lifecycle import RunMoved
from app.staff.tokens import TokenHolder, verify_token
from app.tickets.lifecycle import TicketMoved

PREFIX = "/api/v1"
BODY_BYTES = 256_000
"""Enough for 10,000 characters, each escaped."""


class TokenRefused(AppError):
    """The request has no bearer token that is in use."""

    status = 401
    code = "token_refused"


def api_blueprint(name: str) -> Blueprint:
    """Return a blueprint under /api/v1 that only holders of a token reach; it never looks at the session cookie."""
    blueprint = Blueprint(f"api_{name}", __name__, url_prefix=PREFIX)
    blueprint.before_request(_admit)
    blueprint.register_error_handler(TokenRefused, _ask_for_token)
    blueprint.register_error_handler(InvalidFields, _name_fields)
    blueprint.register_error_handler(RunMoved, moved_answer)
    blueprint.register_error_handler(TicketMoved, moved_answer)
    return blueprint


def holder() -> TokenHolder:
    """Return who asks."""
    return cast(TokenHolder, g.token_holder)


def json_object() -> dict[str, Any]:
    """Return the body, which must be one JSON object. Raises 400, 413 or 415."""
    if not request.is_json:
        raise UnsupportedMediaType
    try:
        body = orjson.loads(request.get_data(cache=False))
    except orjson.JSONDecodeError as error:
        raise BadRequest from error
    if not isinstance(body, dict):
        raise BadRequest
    return body


def json_answer(shape: BaseModel, status: int = 200, **headers: str) -> Response:
    """Return a shape as JSON."""
    response = jsonify(shape.model_dump(mode="json"))
    response.status_code = status
    response.headers.update(headers)
    response.headers["Cache-Control"] = "no-store"
    return response


def moved_answer(error: RunMoved | TicketMoved, words: str | None = None) -> BaseResponse:
    """Answer with who was first, to what, and when; in `words` where it is something else that stands in the way."""
    with container().sessions() as session:
        moved = who_moved(session, error)
    facts = MovedShape.model_validate(moved).model_dump(mode="json")
    return error_answer(error.status, error.code, words or say_told(moved.told), facts={"moved": facts})


def _admit() -> None:
    request.max_content_length = BODY_BYTES
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise TokenRefused("Send a bearer token in the header Authorization.")
    with container().transaction() as session:
        found = verify_token(session, token.strip())
    if found is None:
        raise TokenRefused("This token is unknown or no longer in use.")
    g.token_holder = found


def _ask_for_token(error: TokenRefused) -> BaseResponse:
    response = error_answer(error.status, error.code, say(error))
    presented = ', error="invalid_token"' if "Authorization" in request.headers else ""
    response.headers["WWW-Authenticate"] = f'Bearer realm="draftdesk"{presented}'
    return response


def _name_fields(error: InvalidFields) -> BaseResponse:
    fields = {fault.field: gettext(fault.message, **fault.values) for fault in error.errors}
    return error_answer(error.status, error.code, say(error), fields)
