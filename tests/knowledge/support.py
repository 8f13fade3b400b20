"""What several knowledge tests look with."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select, text

from app.bootstrap import Container
from app.errors import Unavailable
from app.knowledge.models import DocState, Posting, TermStatistic
from app.knowledge.queries import document_row
from app.knowledge.retrieval import KnowledgeSearch
from app.llm.embedding import EmbeddingRefused, Vector

REFUNDS = "# 退款多久到账\n\n## 信用卡\n\n信用卡退款5至10个工作日到账。\n\n## 礼品卡\n\n礼品卡退款即时退回原卡。\n"
REFUNDS_NEW = "# 退款多久到账\n\n## 信用卡\n\n信用卡退款当天到账。\n\n## 礼品卡\n\n礼品卡退款即时退回原卡。\n"


class AwayEmbedder:
    """An embedder whose service does not answer."""

    name, dimensions = "away/1", 384

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        raise Unavailable("The embedding service does not answer.")

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        raise Unavailable("The embedding service does not answer.")


class RefusingEmbedder:
    """An embedder whose service answers, but not with vectors."""

    name, dimensions = "refusing/1", 384

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        raise EmbeddingRefused("The embedding service refused the request; check EMBEDDING_* settings.")

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        raise EmbeddingRefused("The embedding service refused the request; check EMBEDDING_* settings.")


def found_texts(search: KnowledgeSearch, query: str) -> list[str]:
    return [passage.text for passage in search.explain(query).result.passages]


def statistics_are_right(container: Container) -> bool:
    """Whether the kept statistics equal what the postings say."""
    with container.transaction() as session:
        counted = session.execute(select(Posting.term, func.count()).group_by(Posting.term)).all()
        kept = session.execute(select(TermStatistic.term, TermStatistic.chunks)).all()
    return sorted(counted) == sorted(kept)


def is_active(container: Container, doc_id: UUID) -> bool:
    with container.transaction() as session:
        return document_row(session, doc_id).state is DocState.ACTIVE


def age(container: Container, doc_id: UUID, *, enqueued: str = "0 seconds", leased_for: str | None = None) -> None:
    """Move a document's times: enqueued so long ago, leased for so long from now."""
    with container.transaction() as session:
        session.execute(
            text(
                "UPDATE knowledge_docs SET enqueued_at = now() - CAST(:enqueued AS interval),"
                " leased_until = now() + CAST(:leased AS interval) WHERE id = :id"
            ),
            {"enqueued": enqueued, "leased": leased_for, "id": doc_id},
        )
