"""Knowledge pages, for supervisors and administrators: documents, one document, and what a question would find."""

from contextlib import closing
from dataclasses import dataclass
from uuid import UUID

from flask import Blueprint, current_app, flash, redirect, render_template, request, url_for
from werkzeug.datastructures import FileStorage
from werkzeug.wrappers import Response

from app.errors import AppError
from app.httpkit.auth import current_staff, current_staff_or_none, role_required
from app.httpkit.container import container
from app.httpkit.htmx import answer, is_htmx, partial
from app.httpkit.language import gettext as _
from app.httpkit.language import say
from app.knowledge import parsers, queries, service
from app.staff.models import Role
from app.web.knowledge_regions import LIST, list_digest, render_list

blueprint = Blueprint("knowledge", __name__, url_prefix="/knowledge")

QUESTION_LIMIT = 500
FILES_AT_ONCE = 20


def make_room_for_uploads() -> None:
    """Let an upload be as large as its files may be, for people who may upload; called before each request."""
    if request.endpoint != f"{blueprint.name}.upload":
        return
    staff = current_staff_or_none()
    if staff and staff.may(Role.SUPERVISOR):
        forms = current_app.config["MAX_CONTENT_LENGTH"]
        request.max_content_length = forms + FILES_AT_ONCE * container().settings.upload_max_bytes


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What became of one file; `words` say why it was refused, and are empty when it was taken."""

    name: str
    words: str = ""


@blueprint.get("")
@role_required(Role.SUPERVISOR)
def index() -> Response:
    """Show the documents and the panel to try a question."""
    return _index([])


@blueprint.post("")
@role_required(Role.SUPERVISOR)
def upload() -> Response:
    """Take files in, each for itself: one that is refused does not hold up the others."""
    files = [file for file in request.files.getlist("files") if file.filename]
    results = [_take(file) for file in files[:FILES_AT_ONCE]]
    if not files:
        results.append(Uploaded("", _("Choose at least one file.")))
    elif len(files) > FILES_AT_ONCE:
        results.append(
            Uploaded("", _("At most %(count)s files at once; the others were left out.", count=FILES_AT_ONCE))
        )
    if not is_htmx():
        return _index(results)
    with container().sessions() as session:
        rows = queries.documents(session)
    return answer(render_template("knowledge/_upload_results.html", results=results) + partial(LIST, render_list(rows)))


@blueprint.get("/search")
@role_required(Role.SUPERVISOR)
def search() -> Response:
    """Return what a question would find, and why."""
    question = request.args.get("question", "").strip()[:QUESTION_LIMIT]
    found = container().knowledge_search.explain(question) if question else None
    return answer(render_template("knowledge/_search.html", found=found))


@blueprint.get("/<uuid:doc_id>")
@role_required(Role.SUPERVISOR)
def show(doc_id: UUID) -> Response:
    """Show one document as it was cut into chunks."""
    with container().sessions() as session:
        doc = queries.document_row(session, doc_id)
        chunks = queries.chunks_of(session, doc_id, limit=doc.chunk_count or 1)
    return answer(render_template("knowledge/show.html", doc=doc, chunks=chunks))


@blueprint.post("/<uuid:doc_id>/delete")
@role_required(Role.SUPERVISOR)
def delete(doc_id: UUID) -> Response:
    """Take a document out of the base."""
    with container().transaction() as session:
        name = queries.document_row(session, doc_id).name
        service.delete_document(session, doc_id=doc_id, staff_id=current_staff().id)
    return _changed(_("%(name)s was deleted.", name=name))


@blueprint.post("/<uuid:doc_id>/retry")
@role_required(Role.SUPERVISOR)
def retry(doc_id: UUID) -> Response:
    """Read a document that failed once more."""
    with container().transaction() as session:
        name = queries.document_row(session, doc_id).name
        service.retry_document(session, doc_id=doc_id)
    return _changed(_("%(name)s is being read again.", name=name))


def _changed(words: str) -> Response:
    if not is_htmx():
        flash(words, "ok")
        return redirect(url_for("knowledge.index"), 303)
    with container().sessions() as session:
        rows = queries.documents(session)
    # The toast is what the button waits for; the list may have been swapped by the stream before this arrives.
    return answer(render_template("_toast.html", words=words) + partial(LIST, render_list(rows)))


def _take(file: FileStorage) -> Uploaded:
    name = file.filename or ""
    limit = container().settings.upload_max_bytes
    with closing(file):
        content = file.stream.read(limit + 1)
    try:
        with container().transaction() as session:
            service.add_document(session, name=name, content=content, staff_id=current_staff().id, max_bytes=limit)
    except AppError as error:
        return Uploaded(name, say(error))
    return Uploaded(name)


def _index(results: list[Uploaded]) -> Response:
    with container().sessions() as session:
        rows = queries.documents(session)
    page = render_template(
        "knowledge/index.html",
        documents=rows,
        digest=list_digest(rows),
        results=results,
        types=parsers.SUFFIXES,
        most_mb=container().settings.upload_max_mb,
        most_files=FILES_AT_ONCE,
    )
    return answer(page, 422 if results and all(result.words for result in results) else 200)
