"""Bodies that come in chunks and don't say their length. Werkzeug cuts them off at the limit and says nothing."""

from io import BytesIO

from flask import current_app, request
from werkzeug.exceptions import RequestEntityTooLarge


def measure_body() -> None:
    """Read a body that comes in chunks, so that it has a length and meets the limits as any other does.

    Called before each request. Raises RequestEntityTooLarge beyond the limit of forms, for uploads too: browsers say
    how long those are.
    """
    environ = request.environ
    if "HTTP_TRANSFER_ENCODING" not in environ:
        return
    limit: int = current_app.config["MAX_CONTENT_LENGTH"]
    body = environ["wsgi.input"].read(limit + 1)
    if len(body) > limit:
        raise RequestEntityTooLarge
    del environ["HTTP_TRANSFER_ENCODING"]
    environ["wsgi.input"] = BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
