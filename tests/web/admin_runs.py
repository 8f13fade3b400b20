"""Runs in the states that the operations page shows, and the clicks on it."""

import json
import re
from datetime import timedelta
from uuid import UUID

from flask.testing import FlaskClient
from sqlalchemy import ColumnElement, func, update

from app.bootstrap import Container
from app.ids import new_id
from app.runs.admin_lists import RunList
from app.runs.admin_queries import run_list
from app.runs.models import Run, RunStatus
from tests.factories import MadeTicket, make_ticket
from tests.web.pages import send, text_of

S = RunStatus


def ago(**length: float) -> "ColumnElement[object]":
    """Return the time so long ago by the database's clock."""
    return func.now() - timedelta(**length)


def shape(container: Container, run_id: UUID, **values: object) -> None:
    """Change a run's row as no command does."""
    with container.transaction() as session:
        session.execute(update(Run).where(Run.id == run_id).values(**values))


def running(container: Container, *, lease_s: float = 8.0, owner: str = "box:42:p:c", **values: object) -> MadeTicket:
    """Make a run that a worker holds for `lease_s` more seconds; negative: whose lease ran out so long ago."""
    made = make_ticket(container, customer=f"C-{new_id()}")
    until = func.now() + timedelta(seconds=lease_s)
    shape(container, made.run_id, status=S.RUNNING, lease_owner=owner, lease_until=until, fence=1, **values)
    return made


def failed(container: Container, code: str = "worker_lost", **values: object) -> MadeTicket:
    """Make a run that failed just now."""
    made = make_ticket(container, customer=f"C-{new_id()}", run_status=S.FAILED)
    facts = {"error_code": code, "error_message": "The process that worked on this run no longer answers."}
    shape(container, made.run_id, ended_at=func.now(), moved_at=func.now(), **facts | values)
    return made


def listed(container: Container, shown: RunList) -> list[UUID]:
    """Return the runs of a list in its order."""
    with container.sessions() as session:
        return [run.id for run in run_list(session, shown).runs]


def act(client: FlaskClient, run_id: UUID, action: str, status: int = 200, **fields: object) -> str:
    """Click on a button of a run's row; returns the answer."""
    return text_of(send(client, f"/admin/runs/{run_id}/{action}", htmx=True, **fields), status)


def retry(client: FlaskClient, run_id: UUID, status: int = 200, *, seen: dict[str, str] | None = None) -> str:
    """Click on a run's button for another one, on a page that showed it as `seen`, or that was read just now."""
    return act(client, run_id, "retry", status, **(seen or seen_now(client, run_id)))


def seen_now(client: FlaskClient, run_id: UUID) -> dict[str, str]:
    """Return what the button that retries sends of what the page shows."""
    row = text_of(client.get(f"/admin/runs/{run_id}/row"))
    found = re.search(r"hx-vals='({[^']+})'", row)
    assert found, row
    seen: dict[str, str] = json.loads(found.group(1))
    return seen


def sweep(client: FlaskClient) -> str:
    """Click on the button that sweeps."""
    return text_of(send(client, "/admin/runs/sweep", htmx=True))
