"""Static files under addresses that change with their content, so that browsers may keep them for ever."""

from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from flask import Flask, Response, current_app, request, url_for

YEAR_S = 365 * 24 * 3600


def init_assets(app: Flask) -> None:
    """Give templates `asset()` and let browsers keep what it names."""
    app.jinja_env.globals["asset"] = asset
    app.after_request(_keep_versioned)


def asset(name: str) -> str:
    """Return the address of a file in `static/`, with a digest of its content."""
    path = Path(str(current_app.static_folder)) / name
    return url_for("static", filename=name, v=_digest(path, path.stat().st_mtime_ns))


@lru_cache(maxsize=256)
def _digest(path: Path, _changed_ns: int) -> str:
    return sha256(path.read_bytes()).hexdigest()[:10]


def _keep_versioned(response: Response) -> Response:
    if request.endpoint == "static" and "v" in request.args and response.status_code == 200:
        response.cache_control.no_cache = None
        response.cache_control.public = True
        response.cache_control.max_age = YEAR_S
        response.cache_control.immutable = True
    return response
