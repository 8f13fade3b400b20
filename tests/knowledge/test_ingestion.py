"""Documents on their way: each state, replacing, deleting, failing, being killed and gone on with."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update

from app.bootstrap import Container
from app.db.signals import signals
from app.errors import Unavailable
from app.knowledge.chunking import content_hash
from app.knowledge.errors import (
    DocumentMoved,
    DocumentNotFound,
    DuplicateContent,
    EmptyDocument,
    FileTooLarge,
    UnsupportedFile,
)
from app.knowledge.ingestion import ATTEMPTS, GAVE_UP, Ingestion
from app.knowledge.models import ChunkEmbedding, DocState, KnowledgeChunk, KnowledgeDoc, Posting, TermStatistic
from app.knowledge.queries import chunks_of, document_row, documents
from app.knowledge.retrieval import KnowledgeSearch
from app.knowledge.segment import terms
from app.knowledge.service import add_document, delete_document, resume_stuck_documents, retry_document
from app.llm.embedding import LocalEmbedder, Vector
from app.settings import ROOT
from tests.knowledge.conftest import AddText, CountingEmbedder

REFUNDS = "# 退款多久到账\n\n## 信用卡\n\n信用卡退款5至10个工作日到账。\n\n## 礼品卡\n\n礼品卡退款即时退回原卡。\n"
REFUNDS_NEW = "# 退款多久到账\n\n## 信用卡\n\n信用卡退款当天到账。\n\n## 礼品卡\n\n礼品卡退款即时退回原卡。\n"


class AwayEmbedder:
    """An embedder whose service does not answer."""

    name, dimensions = "away/1", 384

    def embed_query(self, text: str) -> Vector:
        raise Unavailable("The embedding service does not answer.")

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        raise Unavailable("The embedding service does not answer.")


def found_texts(search: KnowledgeSearch, query: str) -> list[str]:
    return [passage.text for passage in search.explain(query).result.passages]


def statistics_are_right(container: Container) -> bool:
    """Whether the kept statistics equal what the postings say."""
    with container.transaction() as session:
        counted = session.execute(select(Posting.term, func.count()).group_by(Posting.term)).all()
        kept = session.execute(select(TermStatistic.term, TermStatistic.chunks)).all()
    return sorted(counted) == sorted(kept)


def test_a_document_becomes_active_with_everything_that_finding_needs(
    container: Container, publish: AddText, search: KnowledgeSearch
) -> None:
    doc_id = publish("refund.md", REFUNDS)

    with container.transaction() as session:
        row = document_row(session, doc_id)
        chunks = chunks_of(session, doc_id)
    assert (row.state, row.title, row.chunk_count, row.embedded_count) == (DocState.ACTIVE, "退款多久到账", 2, 2)
    assert [chunk.heading for chunk in chunks] == ["信用卡", "礼品卡"]
    assert found_texts(search, "信用卡退款几天到")[0] == "信用卡退款5至10个工作日到账。"
    assert statistics_are_right(container)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030", "utf-16"])
def test_other_encodings_are_found_as_well(publish: AddText, search: KnowledgeSearch, encoding: str) -> None:
    publish("gift.txt", "礼品卡规则\n\n礼品卡自激活日起三年内有效。".encode(encoding))

    assert found_texts(search, "礼品卡有效期") == ["礼品卡自激活日起三年内有效。"]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.exe", b"text", UnsupportedFile),
        ("", b"text", UnsupportedFile),
        ("a\n.md", b"text", UnsupportedFile),
        ("a.md", b"x" * 2_000_000, FileTooLarge),
        ("a.md", b"", EmptyDocument),
        ("a.txt", b"\n \n", EmptyDocument),
    ],
)
def test_what_can_not_be_taken_is_refused_and_leaves_nothing(
    container: Container, name: str, content: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error), container.transaction() as session:
        add_document(session, name=name, content=content, staff_id=None, max_bytes=1_000_000)
    with container.transaction() as session:
        assert documents(session) == []


def test_the_same_content_is_refused_and_the_document_that_has_it_is_named(upload: AddText) -> None:
    upload("one.md", REFUNDS)

    with pytest.raises(DuplicateContent, match=r"one\.md"):
        upload("two.md", REFUNDS)


def test_folders_in_a_name_are_left_out(container: Container, upload: AddText) -> None:
    doc_id = upload("..\\..\\etc/../passwd.md", REFUNDS)

    with container.transaction() as session:
        assert document_row(session, doc_id).name == "passwd.md"


def test_a_new_version_replaces_the_old_one_at_one_moment(
    container: Container, publish: AddText, upload: AddText, ingestion: Ingestion, search: KnowledgeSearch
) -> None:
    old = publish("refund.md", REFUNDS)
    new = upload("refund.md", REFUNDS_NEW)
    assert found_texts(search, "信用卡退款几天到")[0] == "信用卡退款5至10个工作日到账。"

    ingestion.run(new)

    assert found_texts(search, "信用卡退款几天到")[0] == "信用卡退款当天到账。"
    assert not any("5至10" in one for one in found_texts(search, "信用卡退款5至10个工作日"))
    with container.transaction() as session:
        assert document_row(session, old).state is DocState.ARCHIVED
        assert [(row.id, row.version) for row in documents(session)] == [(new, 2)]
    assert statistics_are_right(container)


def test_a_text_that_is_known_is_not_embedded_again(publish: AddText, embedder: CountingEmbedder) -> None:
    publish("refund.md", REFUNDS)
    embedder.passages.clear()

    publish("refund.md", REFUNDS_NEW)

    assert embedder.passages == ["退款多久到账 > 信用卡\n信用卡退款当天到账。"]


def test_equal_texts_of_one_document_are_embedded_once(
    container: Container, publish: AddText, embedder: CountingEmbedder
) -> None:
    doc_id = publish("a.md", "# 题\n\n## 节\n\n同样的话。\n\n## 另\n\n别的话。\n\n## 节\n\n同样的话。\n")

    assert len(embedder.passages) == 2
    with container.transaction() as session:
        assert document_row(session, doc_id).embedded_count == 3


def test_vectors_known_beforehand_need_no_embedding(
    container: Container, upload: AddText, embedder: CountingEmbedder, local_model: LocalEmbedder
) -> None:
    known_text = "退款多久到账 > 信用卡\n信用卡退款5至10个工作日到账。"
    known = {content_hash(known_text): local_model.embed_passages([known_text])[0]}

    Ingestion(container.transaction, embedder, known).run(upload("refund.md", REFUNDS))

    assert embedder.passages == ["退款多久到账 > 礼品卡\n礼品卡退款即时退回原卡。"]


def test_a_newer_upload_takes_the_place_of_one_that_is_not_finished(
    container: Container, upload: AddText, ingestion: Ingestion
) -> None:
    first = upload("refund.md", REFUNDS)
    second = upload("refund.md", REFUNDS_NEW)

    ingestion.run(first)
    ingestion.run(second)

    with container.transaction() as session:
        assert document_row(session, first).state is DocState.ARCHIVED
        assert document_row(session, second).state is DocState.ACTIVE
    assert statistics_are_right(container)


def test_deleting_takes_effect_at_once_and_what_is_deleted_stays_deleted(
    container: Container, publish: AddText, upload: AddText, ingestion: Ingestion, search: KnowledgeSearch
) -> None:
    doc_id = publish("refund.md", REFUNDS)
    unfinished = upload("refund.md", REFUNDS_NEW)

    with container.transaction() as session:
        delete_document(session, doc_id=doc_id, staff_id=None)

    assert found_texts(search, "信用卡退款几天到") == []
    ingestion.run(unfinished)
    assert found_texts(search, "信用卡退款几天到") == []
    with container.transaction() as session:
        assert documents(session) == []
        assert session.scalar(select(func.count()).select_from(TermStatistic)) == 0
        with pytest.raises(DocumentNotFound):
            delete_document(session, doc_id=doc_id, staff_id=None)


def test_a_failed_document_says_why_and_can_be_retried(
    container: Container, upload: AddText, ingestion: Ingestion
) -> None:
    doc_id = upload("refund.md", REFUNDS)
    with container.transaction() as session:
        session.execute(update(KnowledgeDoc).where(KnowledgeDoc.id == doc_id).values(content=b"---\nspoilt: [\n---\n"))
    ingestion.run(doc_id)
    with container.transaction() as session:
        row = document_row(session, doc_id)
        assert row.state is DocState.FAILED
        assert row.error == "The front matter between the --- lines is not valid YAML."
        session.execute(update(KnowledgeDoc).where(KnowledgeDoc.id == doc_id).values(content=REFUNDS.encode()))
        retry_document(session, doc_id=doc_id)

    ingestion.run(doc_id)

    with container.transaction() as session:
        row = document_row(session, doc_id)
        assert (row.state, row.error) == (DocState.ACTIVE, None)
        with pytest.raises(DocumentMoved):
            retry_document(session, doc_id=doc_id)


def test_an_embedder_that_is_away_delays_a_document_and_does_not_fail_it(
    container: Container, upload: AddText, ingestion: Ingestion
) -> None:
    doc_id = upload("refund.md", REFUNDS)

    for _ in range(ATTEMPTS + 1):
        Ingestion(container.transaction, AwayEmbedder()).run(doc_id)

    with container.transaction() as session:
        row = document_row(session, doc_id)
    assert (row.state, row.error) == (DocState.CHUNKED, "The embedding service does not answer.")
    ingestion.run(doc_id)
    with container.transaction() as session:
        row = document_row(session, doc_id)
    assert (row.state, row.error) == (DocState.ACTIVE, None)


def test_two_jobs_do_not_work_on_one_document(
    container: Container, upload: AddText, ingestion: Ingestion, embedder: CountingEmbedder
) -> None:
    doc_id = upload("refund.md", REFUNDS)
    age(container, doc_id, leased_for="1 minute")

    ingestion.run(doc_id)

    assert embedder.passages == []
    with container.transaction() as session:
        assert document_row(session, doc_id).state is DocState.UPLOADED


def test_a_document_that_kills_its_jobs_is_given_up(
    container: Container, upload: AddText, ingestion: Ingestion
) -> None:
    doc_id = upload("refund.md", REFUNDS)
    with container.transaction() as session:
        session.execute(update(KnowledgeDoc).where(KnowledgeDoc.id == doc_id).values(attempts=ATTEMPTS))

    ingestion.run(doc_id)

    with container.transaction() as session:
        row = document_row(session, doc_id)
    assert (row.state, row.error) == (DocState.FAILED, GAVE_UP)


def test_the_sweep_starts_only_what_nobody_works_on(
    container: Container, upload: AddText, publish: AddText, embedder: CountingEmbedder
) -> None:
    publish("done.md", "# 完\n\n已经完成的文档。")
    fresh, dead, held = (upload(f"{name}.md", f"# {name}\n\n内容{name}。") for name in ("fresh", "dead", "held"))
    age(container, dead, enqueued="2 minutes")
    age(container, held, enqueued="2 minutes", leased_for="1 minute")

    with container.transaction() as session:
        assert resume_stuck_documents(session, embedder=embedder.name) == 1
        assert [key for _, key in signals(session).jobs] == [dead]
    with container.transaction() as session:
        assert resume_stuck_documents(session, embedder=embedder.name) == 0
    assert fresh != dead


def test_another_embedder_gives_active_documents_new_vectors_and_never_mixes_them(
    container: Container, publish: AddText, local_model: LocalEmbedder
) -> None:
    doc_id = publish("refund.md", REFUNDS)
    other = CountingEmbedder(local_model)
    other.name = "other/1"
    search = KnowledgeSearch(container.sessions, other, container.settings)
    assert search.explain("信用卡退款").keyword_only
    age(container, doc_id, enqueued="2 minutes")

    with container.transaction() as session:
        assert resume_stuck_documents(session, embedder=other.name) == 1
    Ingestion(container.transaction, other).run(doc_id)

    assert not search.explain("信用卡退款").keyword_only
    with container.transaction() as session:
        assert document_row(session, doc_id).state is DocState.ACTIVE
        assert resume_stuck_documents(session, embedder=other.name) == 0


KILLED = """
import sys
from uuid import UUID
from app.bootstrap import build_container
from app.knowledge.ingestion import Ingestion
from app.llm.embedding import LocalEmbedder
from app.settings import Settings
settings = Settings(_env_file=None, demo=True, database_url=sys.argv[1], redis_url=sys.argv[2])
Ingestion(build_container(settings).transaction, LocalEmbedder()).run(UUID(sys.argv[3]))
"""


def test_a_killed_ingestion_goes_on_after_the_last_batch(
    container: Container, upload: AddText, ingestion: Ingestion, embedder: CountingEmbedder, search: KnowledgeSearch
) -> None:
    sections = [
        f"## 第{n}节\n\n第{n}节说明第{n}种情况下的处理办法，" + "请您按照页面提示操作。" * 15 for n in range(24)
    ]
    doc_id = upload("long.md", "# 长文档\n\n" + "\n\n".join(sections))
    settings = container.settings
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, settings.database_url, settings.redis_url, str(doc_id)], cwd=ROOT
    )
    before = wait_for_vectors(container, doc_id)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with container.transaction() as session:
        done = session.scalar(select(func.count()).select_from(ChunkEmbedding)) or 0
    assert before <= done < 24
    assert found_texts(search, "第3节") == []

    age(container, doc_id, leased_for="-1 second")
    while not is_active(container, doc_id):
        ingestion.run(doc_id)

    assert len(embedder.passages) == 24 - done
    with container.transaction() as session:
        assert session.scalar(select(func.count()).select_from(KnowledgeChunk)) == 24
    assert found_texts(search, "第3节")
    assert statistics_are_right(container)


def test_terms_of_archived_chunks_are_gone_from_the_index(container: Container, publish: AddText) -> None:
    publish("refund.md", REFUNDS)
    publish("refund.md", REFUNDS_NEW)

    with container.transaction() as session:
        held = set(session.scalars(select(TermStatistic.term)))
    assert "当天" in held
    assert not set(terms("工作日")) & held


def wait_for_vectors(container: Container, doc_id: UUID) -> int:
    """Wait until a process has stored its first vectors."""
    for _ in range(600):
        with container.transaction() as session:
            if count := document_row(session, doc_id).embedded_count:
                return count
        time.sleep(0.05)
    raise AssertionError("no vector within 30 seconds")


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
