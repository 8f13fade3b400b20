"""One template include serves the page and its fragment."""

from flask import Response, render_template

from app.httpkit.htmx import answer, wants_fragment


def page_or_fragment(page: str, fragment: str, **context: object) -> Response:
    """Render `fragment` when htmx asks for a part, else `page`, which includes it. For filters and paging only;
    anything else gets a fragment URL of its own."""
    return answer(render_template(fragment if wants_fragment() else page, **context))
