"""Regions of the document list: what the page includes is what the stream swaps in later."""

from collections.abc import Collection
from hashlib import sha256
from uuid import UUID

from flask import render_template
from sqlalchemy.orm import Session

from app.httpkit.htmx import partial
from app.knowledge.queries import DocumentRow, documents

LIST = "#doc-list"


def list_digest(rows: Collection[DocumentRow]) -> str:
    """Return a short digest of what the list shows, to tell whether a page has gone stale."""
    return sha256(repr(rows).encode()).hexdigest()[:16]


def render_list(rows: Collection[DocumentRow]) -> str:
    """Return the whole list as the page includes it."""
    return render_template("knowledge/_list.html", documents=rows, digest=list_digest(rows))


class KnowledgeRegions:
    """Keeps one page's document list up to date over a stream. Needs an app and a request context to render in."""

    def __init__(self, seen: str | None = None) -> None:
        """`seen` is the digest of the list that the page holds, if it holds one."""
        self._seen = seen
        self._known: list[UUID] = []

    def catch_up(self, session: Session) -> str:
        """Read the list again and return what brings the page up to date: nothing, or the whole list."""
        rows = self._read(session)
        return "" if list_digest(rows) == self._seen else partial(LIST, render_list(rows))

    def changed(self, session: Session, doc_ids: Collection[UUID]) -> str:
        """Return what brings the page up to date after these documents changed, as `<hx-partial>` regions."""
        before = self._known
        rows = self._read(session)
        if before != self._known:
            return partial(LIST, render_list(rows))
        return "".join(
            partial(f"#doc-{row.id}", render_template("knowledge/_row.html", doc=row))
            for row in rows
            if row.id in doc_ids
        )

    def _read(self, session: Session) -> list[DocumentRow]:
        rows = documents(session)
        self._known = [row.id for row in rows]
        return rows
