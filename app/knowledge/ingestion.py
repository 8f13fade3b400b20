"""A document's way to being found: uploaded → parsed → chunked → embedded → active.

One function a state, each with short transactions of its own and none across a call to the embedder, so that a
killed process loses at most one batch of vectors. Two jobs on one document can do no harm: what they write is the same.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import islice
from uuid import UUID

from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from app.clock import monotonic
from app.db.signals import signals
from app.errors import AppError, Unavailable
from app.ids import new_id
from app.knowledge import parsers
from app.knowledge.chunking import Piece, chunk, content_hash, indexed_text
from app.knowledge.index import add_to_index, lock_index, terms_of_chunk
from app.knowledge.models import DocState, KnowledgeChunk, KnowledgeDoc
from app.knowledge.parsers.blocks import Parsed
from app.knowledge.service import ATTEMPTS, UNFINISHED, archive, start_ingestion, unfinished_by
from app.knowledge.vectors import KnownVectors, chunks_without_vector, count_vectors, reuse_vectors, store_vectors
from app.llm.embedding import Embedder, Vector
from app.msgids import msgid

log = logging.getLogger(__name__)

BATCH = 4
"""Chunks embedded between two commits: a few seconds of work on one slow core."""
LEASE = timedelta(seconds=60)
"""How long a job's silence lasts before it is taken for dead."""
SLICE_S = 5.0
"""How long one job works before it lets other documents have a turn; also how long a stopping worker waits."""

GAVE_UP = msgid("This document could not be processed; the log says why.")

Transaction = Callable[[], AbstractContextManager[Session]]


class Ingestion:
    """Takes documents to the active state with one embedder; `known` are vectors had beforehand."""

    def __init__(self, transaction: Transaction, embedder: Embedder, known: KnownVectors | None = None) -> None:
        self._transaction = transaction
        self._embedder = embedder
        self._known = known or {}

    def run(self, doc_id: UUID) -> None:
        """Work on a document until it is active, has failed, or its turn is over (then it is enqueued again).

        Does nothing for a document that is finished or that another job works on. An embedder that is away leaves
        the document where it is, with the reason; the sweep tries again.
        """
        if not self._claim(doc_id):
            return
        until = monotonic() + SLICE_S
        try:
            while self._advance(doc_id):
                if monotonic() > until:
                    self._hand_back(doc_id)
                    return
        except Unavailable as error:
            self._hand_back(doc_id, reason=error.message)
        except AppError as error:
            self._fail(doc_id, error.message)

    def _advance(self, doc_id: UUID) -> bool:
        """Take one step; return whether there may be another."""
        with self._transaction() as session:
            doc = session.get(KnowledgeDoc, doc_id)
        if doc is None or doc.state not in (*UNFINISHED, DocState.ACTIVE):
            return False
        match DocState(doc.state):
            case DocState.UPLOADED:
                self._parse(doc)
            case DocState.PARSED:
                self._chunk(doc)
            case DocState.EMBEDDED:
                self._activate(doc)
            case _ if doc.embedder == self._embedder.name:
                return False
            case _:
                self._embed_batch(doc)
        return True

    def _read(self, doc: KnowledgeDoc) -> Parsed:
        with self._transaction() as session:
            content = session.scalars(select(KnowledgeDoc.content).where(KnowledgeDoc.id == doc.id)).one()
        return parsers.parse(doc.name, content)

    def _parse(self, doc: KnowledgeDoc) -> None:
        parsed = self._read(doc)
        attributes = {**doc.attributes, "tags": list(parsed.tags)}
        with self._transaction() as session:
            self._move(session, doc, DocState.PARSED, title=parsed.title, attributes=attributes)

    def _chunk(self, doc: KnowledgeDoc) -> None:
        pieces = chunk(self._read(doc))
        with self._transaction() as session:
            values = {"chunk_count": len(pieces), "embedded_count": 0, "embedder": None}
            if self._move(session, doc, DocState.CHUNKED, **values):
                session.execute(delete(KnowledgeChunk).where(KnowledgeChunk.doc_id == doc.id))
                session.execute(insert(KnowledgeChunk), [_row(doc, at, piece) for at, piece in enumerate(pieces)])

    def _embed_batch(self, doc: KnowledgeDoc) -> None:
        """Take over the vectors of known texts and embed one batch of the others; without others the state is done."""
        with self._transaction() as session:
            reuse_vectors(session, doc.id, self._embedder.name)
            waiting = chunks_without_vector(session, doc.id, self._embedder.name)
        vectors = self._vectors(doc.title, waiting)
        state = DocState(doc.state)
        done = state if state is DocState.ACTIVE else DocState.EMBEDDED
        with self._transaction() as session:
            store_vectors(session, self._embedder.name, vectors)
            count = count_vectors(session, doc.id, self._embedder.name)
            embedder = None if waiting else self._embedder.name
            self._move(session, doc, state if waiting else done, embedded_count=count, embedder=embedder)

    def _vectors(self, title: str, waiting: Sequence[KnowledgeChunk]) -> dict[UUID, Vector]:
        """Return vectors for all chunks whose text is known, and for one batch of distinct texts that are not."""
        vectors = {
            one.content_hash: self._known[one.content_hash] for one in waiting if one.content_hash in self._known
        }
        unknown = {one.content_hash: one for one in waiting if one.content_hash not in vectors}
        batch = list(islice(unknown.items(), BATCH))
        texts = [indexed_text(title, one.heading, one.text) for _, one in batch]
        fresh = self._embedder.embed_passages(texts) if texts else []
        vectors |= dict(zip((digest for digest, _ in batch), fresh, strict=True))
        return {one.id: vectors[one.content_hash] for one in waiting if one.content_hash in vectors}

    def _activate(self, doc: KnowledgeDoc) -> None:
        """In one transaction: this version in, the one before out; a version that was overtaken is archived."""
        with self._transaction() as session:
            rows = session.scalars(select(KnowledgeChunk).where(KnowledgeChunk.doc_id == doc.id)).all()
        index = [terms_of_chunk(row.id, indexed_text(doc.title, row.heading, row.text)) for row in rows]
        with self._transaction() as session:
            lock_index(session)
            active = session.scalars(
                select(KnowledgeDoc).where(KnowledgeDoc.name == doc.name, KnowledgeDoc.state == DocState.ACTIVE)
            ).one_or_none()
            if active is not None and active.version > doc.version:
                archive(session, [doc.id])
                return
            if active is not None:
                archive(session, [active.id])
            if self._move(session, doc, DocState.ACTIVE, activated_at=func.now(), leased_until=None):
                length = add_to_index(session, index)
                session.execute(update(KnowledgeDoc).where(KnowledgeDoc.id == doc.id).values(term_count=length))

    def _claim(self, doc_id: UUID) -> bool:
        """Take the lease, unless another job has it or nothing is to do; give up on a document that kills jobs."""
        with self._transaction() as session:
            attempts = session.scalar(
                update(KnowledgeDoc)
                .where(
                    KnowledgeDoc.id == doc_id,
                    unfinished_by(self._embedder.name),
                    or_(KnowledgeDoc.leased_until.is_(None), KnowledgeDoc.leased_until < func.now()),
                )
                .values(leased_until=func.now() + LEASE, attempts=KnowledgeDoc.attempts + 1)
                .returning(KnowledgeDoc.attempts)
            )
        if attempts is not None and attempts > ATTEMPTS:
            self._fail(doc_id, GAVE_UP)
            return False
        return attempts is not None

    def _move(self, session: Session, doc: KnowledgeDoc, state: DocState, **values: object) -> bool:
        """Note progress and renew the lease, if the document is still in the state that was acted on."""
        kept = {"state": state, "error": None, "attempts": 0, "leased_until": func.now() + LEASE}
        moved = session.scalar(
            update(KnowledgeDoc)
            .where(KnowledgeDoc.id == doc.id, KnowledgeDoc.state == doc.state)
            .values(**kept | values)
            .returning(KnowledgeDoc.id)
        )
        signals(session).changed_docs.append(doc.id)
        return moved is not None

    def _hand_back(self, doc_id: UUID, *, reason: str | None = None) -> None:
        """Let go of a document: for the next job at once, or with a `reason` for the sweep to try later."""
        with self._transaction() as session:
            session.execute(
                update(KnowledgeDoc)
                .where(KnowledgeDoc.id == doc_id)
                .values(leased_until=None, attempts=0, enqueued_at=func.now(), error=reason)
            )
            if reason is None:
                start_ingestion(session, doc_id)
            else:
                signals(session).changed_docs.append(doc_id)

    def _fail(self, doc_id: UUID, reason: str) -> None:
        """Fail a document with the reason. One that is active stays so: it only lacks its new vectors.

        Those are tried again by the sweep, unless its jobs die of them: then it is left alone (see `unfinished_by`).
        """
        left = {"error": reason, "leased_until": None}
        with self._transaction() as session:
            session.execute(
                update(KnowledgeDoc)
                .where(KnowledgeDoc.id == doc_id, KnowledgeDoc.state.in_(UNFINISHED))
                .values(state=DocState.FAILED, attempts=0, **left)
            )
            session.execute(
                update(KnowledgeDoc)
                .where(KnowledgeDoc.id == doc_id, KnowledgeDoc.state == DocState.ACTIVE)
                .values(attempts=KnowledgeDoc.attempts if reason == GAVE_UP else 0, enqueued_at=func.now(), **left)
            )
            signals(session).changed_docs.append(doc_id)
        log.warning("document %s failed: %s", doc_id, reason)


def _row(doc: KnowledgeDoc, ordinal: int, piece: Piece) -> dict[str, object]:
    indexed = indexed_text(doc.title, piece.heading, piece.text)
    return {
        "id": new_id(),
        "doc_id": doc.id,
        "ordinal": ordinal,
        "heading": piece.heading,
        "text": piece.text,
        "section": piece.section,
        "content_hash": content_hash(indexed),
        "length": len(piece.text),
    }
