"""Knowledge pages: upload, the list and its live rows, one document, what a question would find."""

from io import BytesIO

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select, update

from app.bootstrap import Container
from app.ids import new_id
from app.knowledge.models import DocState, KnowledgeChunk, KnowledgeDoc
from app.knowledge.queries import documents
from app.knowledge.service import add_document, delete_document
from app.staff.models import Role
from app.web.knowledge_regions import KnowledgeRegions, list_digest
from tests.conftest import Login
from tests.web.pages import ENGLISH, HTMX, csrf, send, text_of

GUIDE = "# 退货运费\n\n## 谁承担\n\n质量问题由我们承担来回运费。\n".encode()


@pytest.fixture
def lead(login: Login) -> FlaskClient:
    return login("lead", Role.SUPERVISOR)


def add(container: Container, name: str = "guide.md", content: bytes = GUIDE):
    with container.transaction() as session:
        return add_document(session, name=name, content=content, staff_id=None)


def upload(client: FlaskClient, *files: tuple[bytes, str], htmx: bool = True):
    headers = HTMX | {"X-CSRFToken": csrf(client)} if htmx else {}
    fields = {"files": [(BytesIO(content), name) for content, name in files]}
    if not htmx:
        fields["csrf_token"] = csrf(client)
    return client.post("/knowledge", data=fields, headers=headers, content_type="multipart/form-data")


def test_files_are_taken_each_for_itself(lead: FlaskClient, container: Container) -> None:
    body = text_of(
        upload(
            lead,
            (GUIDE, "a.md"),
            (b"MZ\x00\x01", "b.exe"),
            (b"", "c.txt"),
            (GUIDE, "d.md"),
            ("好的。".encode(), "e.txt"),
        )
    )
    assert body.count("已接收") == 2
    for words in ("读不了这种文件", "文件是空的", "知识库里已有相同内容"):
        assert words in body
    assert 'hx-target="#doc-list"' in body
    with container.sessions() as session:
        assert {doc.name for doc in documents(session)} == {"a.md", "e.txt"}
    assert container.redis.llen("rq:queue:knowledge") == 2


def test_a_file_beyond_the_limit_is_refused_in_words(lead: FlaskClient, container: Container) -> None:
    answer = upload(lead, (b"x" * (container.settings.upload_max_mb * 2**20 + 1), "big.txt"))
    assert "文件太大" in text_of(answer)
    answer.request.environ["wsgi.input"].close()  # the client spools a body of this size to a file


def test_an_upload_works_without_scripts(lead: FlaskClient) -> None:
    assert "已接收" in text_of(upload(lead, (GUIDE, "a.md"), htmx=False))
    assert "请至少选择一个文件" in text_of(upload(lead, htmx=False), 422)


def test_limits_stand_on_the_page_beforehand(lead: FlaskClient) -> None:
    page = text_of(lead.get("/knowledge", headers=ENGLISH))
    assert "at most 10 MB each, 20 at once" in page
    assert "The knowledge base is empty" in page


def test_the_list_shows_how_far_each_document_is(lead: FlaskClient, container: Container) -> None:
    doc_id = add(container)
    assert "等待读取" in text_of(lead.get("/knowledge"))
    with container.transaction() as session:
        session.execute(update(KnowledgeDoc).values(state=DocState.FAILED, error="This file is empty."))
    page = text_of(lead.get("/knowledge"))
    assert "文件是空的" in page
    assert f"/knowledge/{doc_id}/retry" in page


def test_a_failed_document_is_read_again(lead: FlaskClient, container: Container) -> None:
    doc_id = add(container)
    path = f"/knowledge/{doc_id}/retry"
    assert send(lead, path, htmx=True).status_code == 409
    with container.transaction() as session:
        session.execute(update(KnowledgeDoc).values(state=DocState.FAILED))
    assert "正在重新读取guide.md" in text_of(send(lead, path, htmx=True))
    with container.sessions() as session:
        assert session.scalars(select(KnowledgeDoc.state)).one() == DocState.UPLOADED


def test_a_document_is_deleted_from_the_list_and_from_its_page(lead: FlaskClient, container: Container) -> None:
    first, second = add(container), add(container, "other.md", GUIDE + b"x")
    body = text_of(send(lead, f"/knowledge/{first}/delete", htmx=True))
    assert f'id="doc-{first}"' not in body
    assert f'id="doc-{second}"' in body
    assert "已删除guide.md" in body
    assert send(lead, f"/knowledge/{second}/delete").headers["Location"] == "/knowledge"
    assert "已删除other.md" in text_of(lead.get("/knowledge"))
    assert send(lead, f"/knowledge/{second}/delete", htmx=True).status_code == 404
    with container.sessions() as session:
        assert documents(session) == []


def test_agents_cannot_change_the_base(login: Login, container: Container) -> None:
    doc_id = add(container)
    agent = login("agent")
    for path in ("/knowledge", f"/knowledge/{doc_id}/delete", f"/knowledge/{doc_id}/retry"):
        assert send(agent, path).status_code == 403
    with container.sessions() as session:
        assert len(documents(session)) == 1


def test_one_document_shows_its_chunks_as_text(lead: FlaskClient, container: Container) -> None:
    doc_id = add(container)
    with container.transaction() as session:
        chunk = KnowledgeChunk(
            id=new_id(),
            doc_id=doc_id,
            ordinal=0,
            heading="谁承担",
            text="质量问题<b>由我们承担</b>",
            section="s",
            content_hash="h",
            length=12,
        )
        session.add(chunk)
        session.execute(update(KnowledgeDoc).values(chunk_count=1))
    page = text_of(lead.get(f"/knowledge/{doc_id}"))
    assert "质量问题&lt;b&gt;由我们承担&lt;/b&gt;" in page
    assert f'id="chunk-{chunk.id}"' in page
    assert "12字" in page
    assert lead.get(f"/knowledge/{new_id()}").status_code == 404
    assert lead.get("/knowledge/no-uuid").status_code == 404


def test_a_question_without_an_embedder_is_searched_by_words_and_says_so(
    lead: FlaskClient, container: Container
) -> None:
    add(container)
    body = text_of(lead.get("/knowledge/search?question=退货运费谁出", headers=HTMX))
    assert "不够回答" in body
    assert "请先输入一个问题" in text_of(lead.get("/knowledge/search?question=", headers=HTMX))


class TestRegions:
    """What a stream sends for the list."""

    def test_nothing_while_the_page_is_up_to_date(self, app: Flask, container: Container) -> None:
        add(container)
        with container.sessions() as session, app.test_request_context():
            assert KnowledgeRegions(list_digest(documents(session))).catch_up(session) == ""
            assert 'hx-target="#doc-list"' in KnowledgeRegions().catch_up(session)

    def test_a_row_moves_on_in_place(self, app: Flask, container: Container) -> None:
        doc_id, other = add(container), add(container, "other.md", GUIDE + b"x")
        with app.test_request_context():
            regions = KnowledgeRegions()
            with container.sessions() as session:
                regions.catch_up(session)
            with container.transaction() as session:
                session.execute(update(KnowledgeDoc).where(KnowledgeDoc.id == doc_id).values(state=DocState.ACTIVE))
            with container.sessions() as session:
                sent = regions.changed(session, {doc_id})
        assert f'hx-target="#doc-{doc_id}"' in sent
        assert "可用" in sent
        assert str(other) not in sent

    def test_the_list_is_sent_when_a_document_leaves(self, app: Flask, container: Container) -> None:
        doc_id = add(container)
        with app.test_request_context():
            regions = KnowledgeRegions()
            with container.sessions() as session:
                regions.catch_up(session)
            with container.transaction() as session:
                delete_document(session, doc_id=doc_id, staff_id=None)
            with container.sessions() as session:
                sent = regions.changed(session, {doc_id})
        assert 'hx-target="#doc-list"' in sent
        assert str(doc_id) not in sent
