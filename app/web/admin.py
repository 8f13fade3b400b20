"""The queue dashboard (rq-dashboard) for administrators, and what it needs to be safe to mount."""

import rq_dashboard
import rq_dashboard.web
from flask import Flask, abort, request
from werkzeug.wrappers import Response

from app.errors import Forbidden
from app.httpkit.auth import current_staff_or_none, refuse_signed_out, require
from app.httpkit.security import DASHBOARD, csrf
from app.staff.models import Role

PREFIX = "/admin/rq"
_READS = ("GET", "HEAD", "OPTIONS")


def mount_dashboard(app: Flask, *, redis_url: str) -> None:
    """Mount rq-dashboard under /admin/rq: administrators only, nothing can be deleted there.

    It has neither sign-in nor CSRF tokens of its own, so its changes must come from its own pages.
    """
    app.config["RQ_DASHBOARD_REDIS_URL"] = redis_url
    app.config["RQ_DASHBOARD_DISABLE_DELETE"] = True
    rq_dashboard.web.setup_rq_connection(app)
    app.before_request(_guard)
    csrf.exempt(rq_dashboard.blueprint)
    app.register_blueprint(rq_dashboard.blueprint, url_prefix=PREFIX)


def _guard() -> Response | None:
    if request.blueprint != DASHBOARD:
        return None
    if current_staff_or_none() is None:
        return refuse_signed_out()
    require(Role.ADMIN)
    if request.endpoint == f"{DASHBOARD}.requeue_all" and request.method in _READS:
        abort(405)
    if request.method not in _READS and not _from_own_page():
        raise Forbidden("This must be started from the dashboard itself.")
    return None


def _from_own_page() -> bool:
    """Say whether a page of ours made the request, by what browsers tell; over plain HTTP they leave the first out."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    page = request.headers.get("Origin") or request.headers.get("Referer", "")
    return bool(page) and page.partition("://")[2].partition("/")[0] == request.host
