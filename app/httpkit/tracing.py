"""Names each request: in the log lines it causes, in its answer, and on an error page."""

from flask import Flask, Response, g

from app.ids import new_id
from app.logs import log_context

HEADER = "X-Request-ID"


def init_tracing(app: Flask) -> None:
    """Give each request an id."""
    app.before_request(_begin)
    app.after_request(_name)
    app.teardown_request(_end)


def request_id() -> str:
    """Return the id of this request, short enough to be read out on the phone."""
    return str(g.get("request_id", "-"))


def _begin() -> None:
    g.request_id = new_id().hex[-12:]
    g.request_log = log_context(f"req={g.request_id}")
    g.request_log.__enter__()


def _name(response: Response) -> Response:
    response.headers[HEADER] = request_id()
    return response


def _end(_error: BaseException | None) -> None:
    context = g.pop("request_log", None)
    if context is not None:
        context.__exit__(None, None, None)
