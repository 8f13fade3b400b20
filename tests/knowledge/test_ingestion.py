"""Documents on their way: each state, replacing, deleting, failing, being killed and gone on with."""

import pytest
from sqlalchemy import func, select

from app.bootstrap import Container
from app.knowledge.chunking import content_hash
from app.knowledge.errors import (
    DocumentNotFound,
    DuplicateContent,
    EmptyDocument,
    FileTooLarge,
    UnsupportedFile,
)
from app.knowledge.ingestion import Ingestion
from app.knowledge.models import DocState, TermStatistic
from app.knowledge.queries import chunks_of, document_row, documents
from app.knowledge.retrieval import KnowledgeSearch
from app.knowledge.segment import terms
from app.knowledge.service import add_document, delete_document
from app.llm.embedding import LocalEmbedder
from tests.knowledge.conftest import AddText, CountingEmbedder
from tests.knowledge.support import REFUNDS, REFUNDS_NEW, found_texts, statistics_are_right


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


def test_terms_of_archived_chunks_are_gone_from_the_index(container: Container, publish: AddText) -> None:
    publish("refund.md", REFUNDS)
    publish("refund.md", REFUNDS_NEW)

    with container.transaction() as session:
        held = set(session.scalars(select(TermStatistic.term)))
    assert "当天" in held
    assert not set(terms("工作日")) & held
