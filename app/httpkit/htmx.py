"""htmx 4 on top of `htmx-flask`, which speaks htmx 2: the request headers that are new, and free reswap values."""

from typing import cast

from flask import Flask, Response, request
from htmx_flask import Htmx
from htmx_flask.requests import HtmxHeaders

VARY = ("HX-Request", "HX-Request-Type", "HX-Boosted", "HX-History-Restore-Request")


def init_htmx(app: Flask) -> None:
    """Give requests their `htmx` attribute."""
    Htmx(app)


def is_htmx() -> bool:
    """Return whether htmx made this request."""
    return bool(_headers())


def wants_fragment() -> bool:
    """Return whether htmx will swap the answer into a part of the page, and not the whole of it."""
    headers = _headers()
    whole = headers.boosted or headers.history_restore_request or request.headers.get("HX-Request-Type") == "full"
    return bool(headers) and not whole


def source() -> str | None:
    """Return the element that made the request as htmx 4 names it, for example `button#approve`."""
    return request.headers.get("HX-Source")


def reswap(response: Response, how: str, target: str | None = None) -> Response:
    """Have htmx swap the answer by `how` (any htmx 4 swap, modifiers too), into `target` if one is given."""
    response.headers["HX-Reswap"] = how
    if target:
        response.headers["HX-Retarget"] = target
    return response


def partial(target: str, markup: str, swap: str = "outerHTML") -> str:
    """Return one region of an answer or of a stream: htmx swaps `markup` into `target` (a CSS selector)."""
    return f'<hx-partial hx-target="{target}" hx-swap="{swap}">{markup}</hx-partial>'


def answer(body: str, status: int = 200) -> Response:
    """Return a fragment that caches keep apart from the page at the same address."""
    response = Response(body, status=status, mimetype="text/html")
    response.vary.update(VARY)
    return response


def _headers() -> HtmxHeaders:
    return cast(HtmxHeaders, request.htmx)  # type: ignore[attr-defined]
