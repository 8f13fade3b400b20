"""What browsers are told to refuse, and what we refuse from browsers: headers, cookies, CSRF."""

from flask import Blueprint, Flask, Response, request
from flask_wtf import CSRFProtect

from app.settings import Settings
from app.staff.sign_in import SESSION_LIFE

CSP = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
# rq-dashboard builds its tables with inline scripts; only its own pages are served so.
DASHBOARD_CSP = CSP + "; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'"
DASHBOARD = "rq_dashboard"

csrf = CSRFProtect()


def init_security(app: Flask, settings: Settings) -> None:
    """Set the session cookie, the CSRF check of every form and htmx request, and the headers of every answer."""
    app.config.update(
        SECRET_KEY=settings.secret_key.get_secret_value(),
        SESSION_COOKIE_NAME="draftdesk",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.secure_cookies,
        PERMANENT_SESSION_LIFETIME=SESSION_LIFE,
        # A token lives as long as its session: people keep a ticket open for hours.
        WTF_CSRF_TIME_LIMIT=None,
    )
    csrf.init_app(app)
    app.after_request(_harden)


def without_csrf(blueprint: Blueprint) -> None:
    """Leave a blueprint out of the token check; it must not act on the session cookie alone."""
    csrf.exempt(blueprint)


def _harden(response: Response) -> Response:
    headers = response.headers
    headers.setdefault("Content-Security-Policy", DASHBOARD_CSP if request.blueprint == DASHBOARD else CSP)
    headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.setdefault("Referrer-Policy", "same-origin")
    headers.setdefault("X-Frame-Options", "DENY")
    headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
    if response.mimetype == "text/html":
        # Customers' words stay out of caches and out of the back button of a shared computer.
        headers.setdefault("Cache-Control", "no-store")
    return response
