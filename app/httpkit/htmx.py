"""htmx 4: whether it asks, and how it is answered."""

from flask import Flask, Response, request
from htmx_flask import Htmx

VARY = ("HX-Request", "HX-Request-Type", "HX-Boosted", "HX-History-Restore-Request")


def init_htmx(app: Flask) -> None:
    """Give requests their `htmx` attribute."""
    Htmx(app)


def is_htmx() -> bool:
    """Return whether htmx made this request."""
    return bool(request.htmx)  # type: ignore[attr-defined]


def partial(target: str, markup: str, swap: str = "outerHTML") -> str:
    """Return one region of an answer or of a stream: htmx swaps `markup` into `target` (a CSS selector)."""
    return f'<hx-partial hx-target="{target}" hx-swap="{swap}">{markup}</hx-partial>'


def answer(body: str, status: int = 200) -> Response:
    """Return a fragment that caches keep apart from the page at the same address."""
    response = Response(body, status=status, mimetype="text/html")
    response.vary.update(VARY)
    return response
