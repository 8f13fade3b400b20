"""What a person does with a draft. Each action calls one command of the review room and answers with fresh regions."""

from uuid import UUID

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.errors import AppError, Conflict, InvalidInput
from app.httpkit.auth import current_staff, staff_required
from app.httpkit.container import container
from app.httpkit.htmx import answer, partial
from app.httpkit.language import gettext as _
from app.httpkit.language import say
from app.ids import parse_id
from app.review import service
from app.review.contract import CHANGE_LABELS, Seen, SeenIsStale, TextBlocked
from app.review.reply import REPLY_MAX
from app.review.ticket_page import ticket_id_of, ticket_page
from app.runs.lifecycle import RunMoved
from app.tickets.lifecycle import TicketMoved
from app.web import moved_words, ticket_words
from app.web.browser_findings import browser_findings
from app.web.ticket_regions import render_notice, render_regions

blueprint = Blueprint("review", __name__, url_prefix="/tickets/<int:number>")


@blueprint.post("/approve")
@staff_required
def approve(number: int) -> Response:
    """Approve the text in the editor and send it."""
    with container().transaction() as session:
        service.approve(
            session,
            ticket_id=ticket_id_of(session, number),
            staff_id=current_staff().id,
            text=_text("text"),
            seen=_seen(),
            key=request.form.get("key", ""),
        )
    return _fresh(number)


@blueprint.post("/regenerate")
@staff_required
def regenerate(number: int) -> Response:
    """Start over, with an optional hint; also retries a run that failed or was stopped."""
    staff_id = current_staff().id
    with container().transaction() as session:
        service.regenerate(
            session,
            ticket_id=ticket_id_of(session, number),
            staff_id=staff_id,
            hint=_text("hint"),
            plan=container().run_plan(by=staff_id),
            run_id=_run_id(),
        )
    return _fresh(number)


@blueprint.post("/manual")
@staff_required
def manual(number: int) -> Response:
    """Open an editor without the model."""
    staff_id = current_staff().id
    with container().transaction() as session:
        service.start_manual(
            session,
            ticket_id=ticket_id_of(session, number),
            staff_id=staff_id,
            plan=container().run_plan(by=staff_id),
            run_id=_run_id(),
        )
    return _fresh(number)


@blueprint.post("/escalate")
@staff_required
def escalate(number: int) -> Response:
    """Hand the ticket to a person who knows more, with a reason."""
    with container().transaction() as session:
        service.escalate(
            session,
            ticket_id=ticket_id_of(session, number),
            run_id=_run_id(),
            staff_id=current_staff().id,
            reason=_text("reason"),
        )
    return _fresh(number)


@blueprint.post("/cancel")
@staff_required
def cancel(number: int) -> Response:
    """Stop the run that is at work."""
    with container().transaction() as session:
        service.cancel_run(
            session, ticket_id=ticket_id_of(session, number), run_id=_run_id(), staff_id=current_staff().id
        )
    return _fresh(number)


@blueprint.post("/check")
@staff_required
def check(number: int) -> Response:  # noqa: ARG001 - the check is the same for every ticket
    """Return the checks of a text, while it is being typed."""
    return answer(_checks(_text("text")[:REPLY_MAX]))


@blueprint.post("/composer")
@staff_required
def composer(number: int) -> tuple[str, int]:
    """Keep what is being typed."""
    with container().transaction() as session:
        ticket_id = ticket_id_of(session, number)
        service.save_composer(session, ticket_id=ticket_id, staff_id=current_staff().id, body=_text("body"))
    return "", 204


@blueprint.errorhandler(TextBlocked)
def text_blocked(error: TextBlocked) -> Response:
    """Show what must change, in the editor that the text is still in."""
    return answer(_checks(_text("text")) + _notice(say(error), kind="blocked"), error.status)


@blueprint.errorhandler(RunMoved)
@blueprint.errorhandler(TicketMoved)
def moved(error: RunMoved | TicketMoved) -> Response:
    """Say who was first, to what, and when; the text stays in the editor."""
    return answer(_notice(moved_words.refused(error)), error.status)


@blueprint.errorhandler(SeenIsStale)
def seen_is_stale(error: SeenIsStale) -> Response:
    """Say what has changed since the page was read."""
    changes = [_(CHANGE_LABELS[change]) for change in error.changes]
    return answer(_notice(" ".join([say(error), *changes])), error.status)


@blueprint.errorhandler(Conflict)
@blueprint.errorhandler(InvalidInput)
def refused(error: AppError) -> Response:
    """Say why nothing was done."""
    return answer(_notice(say(error), kind="conflict" if error.status == 409 else "invalid"), error.status)


def _fresh(number: int) -> Response:
    with container().transaction() as session:
        page = ticket_page(session, number, staff_id=current_staff().id)
    return answer(render_notice(number) + render_regions(page))


def _checks(text: str) -> str:
    findings = browser_findings(text)
    return "".join(
        partial(
            f"#checks-{part}", render_template(f"tickets/_checks_{part}.html", findings=findings, words=ticket_words)
        )
        for part in ("strip", "list")
    )


def _notice(words: str, kind: str = "conflict") -> str:
    return render_notice(request.view_args["number"] if request.view_args else 0, words, kind)


def _text(name: str) -> str:
    """Return a field; browsers send line ends as CRLF."""
    return request.form.get(name, "").replace("\r\n", "\n")


def _run_id() -> UUID:
    run_id = parse_id(request.form.get("run_id", ""))
    if run_id is None:
        raise InvalidInput("The form is not complete. Reload the page and try again.", field="run_id")
    return run_id


def _seen() -> Seen:
    form = request.form
    return Seen(
        run_id=_run_id(),
        draft_id=parse_id(form.get("draft_id", "")),
        draft_digest=form.get("draft_digest") or None,
        last_customer_message_id=parse_id(form.get("last_customer_message_id", "")),
        last_reply_id=parse_id(form.get("last_reply_id", "")),
        lint_version=form.get("lint_version", ""),
        sources_digest=form.get("sources_digest", ""),
    )
