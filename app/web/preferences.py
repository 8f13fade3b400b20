"""What a person chooses for their own pages."""

from datetime import timedelta

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from app.errors import InvalidInput
from app.httpkit.auth import current_staff_or_none, local_path
from app.httpkit.container import container
from app.httpkit.language import COOKIE
from app.staff.models import LOCALES
from app.staff.service import change_locale

blueprint = Blueprint("preferences", __name__, url_prefix="/preferences")


@blueprint.post("/language")
def language() -> Response:
    """Switch the language: for the person if one is signed in, and for this browser."""
    locale = request.form.get("locale", "")
    if locale not in LOCALES:
        raise InvalidInput("There is no such language.", field="locale")
    staff = current_staff_or_none()
    if staff:
        with container().transaction() as session:
            change_locale(session, staff_id=staff.id, locale=locale)
    response = redirect(local_path(request.form.get("next")) or url_for("inbox.index"), 303)
    response.set_cookie(
        COOKIE,
        locale,
        max_age=timedelta(days=365),
        httponly=True,
        samesite="Lax",
        secure=container().settings.secure_cookies,
    )
    return response
