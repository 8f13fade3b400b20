"""/healthz: whether this process can do its work. For load balancers; needs no sign-in and says no secrets."""

from flask import Blueprint, Response, jsonify
from redis import RedisError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.httpkit.container import container

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
def healthz() -> tuple[Response, int]:
    """Answer 200 when PostgreSQL and Redis answer, else 503, and which of them does not."""
    parts = {"postgresql": _postgresql_answers(), "redis": redis_answers()}
    healthy = all(parts.values())
    body = {"status": "ok" if healthy else "unavailable"} | {name: "ok" if up else "away" for name, up in parts.items()}
    return jsonify(body), 200 if healthy else 503


def _postgresql_answers() -> bool:
    try:
        with container().engine.connect() as connection:
            connection.execute(text("SET LOCAL statement_timeout = '2s'"))
            return connection.execute(text("SELECT 1")).scalar() == 1
    except SQLAlchemyError:
        return False


def redis_answers() -> bool:
    """Return whether Redis answers this process."""
    try:
        return bool(container().redis.ping())
    except RedisError:
        return False
