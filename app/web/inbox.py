"""The inbox page, and more rows of its list."""

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.httpkit.auth import staff_required
from app.httpkit.container import container
from app.httpkit.htmx import answer
from app.review.inbox import inbox_page
from app.review.inbox_state import Group
from app.web.inbox_regions import ListView, filter_from, list_view

blueprint = Blueprint("inbox", __name__)


@blueprint.get("/")
@staff_required
def index() -> Response:
    """Show the list without a ticket beside it."""
    with container().sessions() as session:
        inbox = list_view(session, request.args)
    return answer(render_template("inbox/index.html", inbox=inbox))


@blueprint.get("/inbox/rows")
@staff_required
def rows() -> Response:
    """Return the list anew, or with `after` the rows that follow."""
    shown = filter_from(request.args)
    after = request.args.get("after")
    with container().sessions() as session:
        inbox = ListView(shown, inbox_page(session, shown, after))
    if not after:
        return answer(render_template("inbox/_list.html", inbox=inbox))
    band = after.partition(".")[0]
    above = Group(int(band)) if band in {str(group.value) for group in Group} else None
    return answer(render_template("inbox/_rows.html", inbox=inbox, last_group=above))
