"""The operations page, for administrators: what runs do, who holds them, and what a person can do about it.

The page asks for its content anew every few seconds (`static/js/admin.js`): leases run out and runs grow stale without
an event, so a stream would not tell. It is morphed, not replaced, so that scroll, focus and open rows stay.
"""

from uuid import UUID

from flask import Blueprint, render_template, request
from redis import RedisError
from werkzeug.wrappers import Response

from app.errors import Conflict, InvalidInput
from app.httpkit.auth import current_staff, role_required
from app.httpkit.container import container
from app.httpkit.htmx import answer, is_htmx, partial
from app.httpkit.language import gettext as _
from app.httpkit.language import say
from app.review import service
from app.runs import admin, recovery
from app.runs.admin_queries import AdminRun, one_run
from app.runs.lifecycle import RunMoved
from app.runs.models import RunStatus
from app.staff import audit
from app.staff.models import Role
from app.tickets.lifecycle import TicketMoved
from app.web import moved_words, run_words
from app.web.run_board import list_named, read_board, read_opened

blueprint = Blueprint("admin_runs", __name__, url_prefix="/admin/runs")


@blueprint.get("")
@role_required(Role.ADMIN)
def index() -> Response:
    """Show a list of runs."""
    return answer(render_template("admin/runs.html", board=read_board(), words=run_words))


@blueprint.get("/board")
@role_required(Role.ADMIN)
def board() -> Response:
    """Return the content of the page anew, with the rows that are open on it."""
    return answer(render_template("admin/_board.html", board=read_board(), words=run_words))


@blueprint.get("/<uuid:run_id>")
@role_required(Role.ADMIN)
def show(run_id: UUID) -> Response:
    """Show a run with what happened to it: its open row for htmx, else a page of its own."""
    if is_htmx():
        return answer(_row(run_id, is_open=True))
    with container().sessions() as session:
        run, opened = one_run(session, run_id), read_opened(session, run_id)
    return answer(render_template("admin/run.html", run=run, opened=opened, shown=list_named(), words=run_words))


@blueprint.get("/<uuid:run_id>/row")
@role_required(Role.ADMIN)
def row(run_id: UUID) -> Response:
    """Return a run's row, closed."""
    return answer(_row(run_id, is_open=False))


@blueprint.post("/<uuid:run_id>/retry")
@role_required(Role.ADMIN)
def retry(run_id: UUID) -> Response:
    """Make a new run in the place of one that failed, was stopped, or is stuck, if it is as the page showed it."""
    staff_id, seen = current_staff().id, _seen(run_id)
    with container().transaction() as session:
        service.retry(session, staff_id=staff_id, plan=container().run_plan(by=staff_id), seen=seen)
    return _acted(run_id)


@blueprint.post("/<uuid:run_id>/stop")
@role_required(Role.ADMIN)
def stop(run_id: UUID) -> Response:
    """Stop a run that has not ended."""
    with container().transaction() as session:
        ticket_id = one_run(session, run_id).ticket_id
        service.cancel_run(session, ticket_id=ticket_id, run_id=run_id, staff_id=current_staff().id)
    return _acted(run_id)


@blueprint.post("/<uuid:run_id>/take-out")
@role_required(Role.ADMIN)
def take_out(run_id: UUID) -> Response:
    """Set a run aside that no worker is to have any more; its ticket goes to a person."""
    with container().transaction() as session:
        ticket_id = one_run(session, run_id).ticket_id
        admin.take_out(session, ticket_id=ticket_id, run_id=run_id, staff_id=current_staff().id)
    return _acted(run_id)


@blueprint.post("/sweep")
@role_required(Role.ADMIN)
def sweep_now() -> Response:
    """Do now what the schedule does every few seconds."""
    parts = container()
    done = {
        "ended": recovery.sweep(parts.transaction, parts.stale_policy, parts.run_plan()),
        "retried": recovery.retry_due(parts.transaction, parts.run_plan()),
    }
    with parts.transaction() as session:
        audit.record(session, "runs_swept", staff_id=current_staff().id, run_id=None, ticket_id=None, **done)
    try:
        started = recovery.enqueue_unclaimed(parts.transaction, parts.queue)
    except RedisError:
        words = _("Redis does not answer, so no run was started. Ended: %(ended)s, retried: %(retried)s.", **done)
        return _toast(words, "bad")
    return _toast(_("Swept. Ended: %(ended)s, retried: %(retried)s, started: %(started)s.", **done, started=started))


@blueprint.errorhandler(RunMoved)
def run_moved(error: RunMoved) -> Response:
    """Say who was first, to what, and when; what the same person did a moment ago is done, not refused."""
    with container().sessions() as session:
        run = one_run(session, _asked_run())
    if _is_done(run, error, current_staff().id):
        return _acted(run.id)
    return answer(_row_partial(run.id, moved_words.refused(error)), error.status)


@blueprint.errorhandler(TicketMoved)
def ticket_moved(error: TicketMoved) -> Response:
    """Say who has ended the ticket of the run, how, and when."""
    return answer(_row_partial(_asked_run(), moved_words.refused(error)), error.status)


@blueprint.errorhandler(Conflict)
def refused(error: Conflict) -> Response:
    """Say in the row why nothing was done."""
    return answer(_row_partial(_asked_run(), say(error)), error.status)


def _asked_run() -> UUID:
    run_id: UUID = (request.view_args or {})["run_id"]
    return run_id


def _seen(run_id: UUID) -> service.SeenRun:
    fence = request.form.get("seen_fence", "")
    if not (fence.isascii() and fence.isdigit() and len(fence) < 10):
        raise InvalidInput("The form is not complete. Reload the page and try again.", field="seen_fence")
    return service.SeenRun(run_id, request.form.get("seen_status", ""), int(fence))


def _is_done(run: AdminRun, error: RunMoved, staff_id: UUID) -> bool:
    """Say whether the run is refused for the very thing that this person asks for again, by a second click."""
    asked = request.endpoint
    if asked == f"{blueprint.name}.retry":
        return run.newer is not None and run.newer.goes_on_from == run.id and run.newer.by == staff_id
    wanted = run.set_aside if asked == f"{blueprint.name}.take_out" else run.status is RunStatus.CANCELLED
    return wanted and error.by == staff_id


def _toast(words: str, kind: str = "ok") -> Response:
    return answer(partial("#toasts", render_template("_toast.html", words=words, kind=kind), "beforeend"))


def _acted(run_id: UUID) -> Response:
    return answer(_row_partial(run_id))


def _row_partial(run_id: UUID, notice: str = "") -> str:
    is_open = "open" in request.form
    return partial(f"#run-{run_id}", _row(run_id, is_open=is_open, is_held=True, notice=notice), "outerMorph")


def _row(run_id: UUID, *, is_open: bool, is_held: bool = False, notice: str = "") -> str:
    with container().sessions() as session:
        run = one_run(session, run_id)
        opened = read_opened(session, run_id) if is_open else None
    return render_template(
        "admin/_row.html",
        run=run,
        opened=opened,
        shown=list_named(),
        is_held=is_held,
        notice=notice,
        words=run_words,
    )
