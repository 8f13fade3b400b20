"""Runs: look at one, stop it, follow it. Approving is for people: there is no address for it here."""

from collections.abc import Iterator
from uuid import UUID

import orjson
from flask import Response, request

from app.api.entry import api_blueprint, holder, json_answer
from app.api.shapes import RunShape
from app.bootstrap import Container
from app.db.signals import EventFact
from app.errors import NotFound
from app.httpkit.container import container
from app.httpkit.sse import HEARTBEAT, event_stream, frame, last_event_id
from app.live.thread_reader import ThreadReader
from app.review.contract import stored_draft
from app.review.service import cancel_run
from app.runs.events import events_after
from app.runs.queries import ENDS, RunRow, end_seq, run_row, steps_of

HEARTBEAT_S = 15.0
WITHOUT_HINTS_S = 2.0
"""How often PostgreSQL is asked while Redis is away."""

bp = api_blueprint("runs")


@bp.get("/runs/<uuid:run_id>")
def show(run_id: UUID) -> Response:
    """Show a run with its steps and its newest draft."""
    return json_answer(_shape(run_id))


@bp.post("/runs/<uuid:run_id>/cancel")
def cancel(run_id: UUID) -> Response:
    """Stop a run that has not ended; 409 when it has."""
    run = _found(run_id)
    with container().transaction() as session:
        cancel_run(session, ticket_id=run.ticket_id, run_id=run_id, staff_id=None, token=holder().name)
    return json_answer(_shape(run_id))


@bp.get("/runs/<uuid:run_id>/events")
def events(run_id: UUID) -> Response:
    """Follow a run: server-sent events until its end, from `Last-Event-ID` (or `after`) on; 204 when it is over."""
    after = last_event_id(request.headers.get("Last-Event-ID"), request.args.get("after"))
    run = _found(run_id)
    parts = container()
    with parts.sessions() as session:
        ended_at = end_seq(session, run_id)
    if ended_at is not None and ended_at <= after:
        return Response(status=204)
    return event_stream(_follow(parts, run, after))


def _follow(parts: Container, run: RunRow, after: int) -> Iterator[str]:
    """Yield a frame for each event of the run; no database session is held between them."""

    def history(thread_id: UUID, seq: int) -> list[EventFact]:
        with parts.sessions() as session:
            return events_after(session, thread_id, seq)

    reader = ThreadReader(parts.redis, history, run.thread_id, after)
    heard = 0
    with parts.hub.subscribe(run.thread_id) as subscription:
        while True:
            for event in reader.read(heard):
                if event.run_id != run.id:
                    continue
                yield frame(_fact(event), event_id=event.seq, event=event.type)
                if event.type in ENDS:
                    return
            batch = subscription.take(HEARTBEAT_S if parts.hub.connected else WITHOUT_HINTS_S)
            heard = max((hint.seq for hint in batch.hints if hint.thread_id == run.thread_id), default=heard)
            if not batch:
                yield HEARTBEAT


def _fact(event: EventFact) -> str:
    fact = {"seq": event.seq, "type": event.type, "run_id": event.run_id, "ticket_id": event.ticket_id}
    return orjson.dumps(fact | {"payload": event.payload}).decode()


def _found(run_id: UUID) -> RunRow:
    with container().sessions() as session:
        run = run_row(session, run_id)
    if run is None:
        raise NotFound("There is no such run.")
    return run


def _shape(run_id: UUID) -> RunShape:
    run = _found(run_id)
    with container().sessions() as session:
        return RunShape.of(run, steps_of(session, run_id), stored_draft(session, run_id))
