"""Documents in trouble: failing, delayed, killed, given up; and what the sweep does for them."""

import os
import signal
import subprocess
import sys
import time
from uuid import UUID

import pytest
from rq import Queue
from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.db.signals import Job, JobName, signals
from app.ids import new_id
from app.knowledge.errors import (
    DocumentMoved,
)
from app.knowledge.ingestion import GAVE_UP, Ingestion
from app.knowledge.models import ChunkEmbedding, DocState, KnowledgeChunk, KnowledgeDoc
from app.knowledge.queries import document_row
from app.knowledge.retrieval import KnowledgeSearch
from app.knowledge.service import ATTEMPTS, resume_stuck_documents, retry_document
from app.live.job_queue import QUEUE_OF
from app.llm.embedding import LocalEmbedder
from app.settings import ROOT
from tests.knowledge.conftest import AddText, CountingEmbedder
from tests.knowledge.support import (
    REFUNDS,
    AwayEmbedder,
    RefusingEmbedder,
    age,
    found_texts,
    is_active,
    statistics_are_right,
)


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
        assert [job.key for job in signals(session).jobs] == [dead]
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


def test_an_active_document_that_another_embedder_refuses_says_so_and_is_tried_again_later(
    container: Container, publish: AddText, search: KnowledgeSearch
) -> None:
    doc_id = publish("refund.md", REFUNDS)
    refusing = RefusingEmbedder()

    Ingestion(container.transaction, refusing).run(doc_id)

    with container.transaction() as session:
        row = document_row(session, doc_id)
        assert row.state is DocState.ACTIVE
        assert row.error == "The embedding service refused the request; check EMBEDDING_* settings."
        assert resume_stuck_documents(session, embedder=refusing.name) == 0
    assert found_texts(search, "信用卡退款")
    age(container, doc_id, enqueued="2 minutes")
    with container.transaction() as session:
        assert resume_stuck_documents(session, embedder=refusing.name) == 1


def test_an_active_document_that_kills_its_jobs_is_left_alone_until_somebody_retries_it(
    container: Container, publish: AddText, local_model: LocalEmbedder
) -> None:
    doc_id = publish("refund.md", REFUNDS)
    other = CountingEmbedder(local_model)
    other.name = "other/1"
    with container.transaction() as session:
        session.execute(update(KnowledgeDoc).where(KnowledgeDoc.id == doc_id).values(attempts=ATTEMPTS))

    Ingestion(container.transaction, other).run(doc_id)

    age(container, doc_id, enqueued="2 minutes")
    with container.transaction() as session:
        row = document_row(session, doc_id)
        assert (row.state, row.error) == (DocState.ACTIVE, GAVE_UP)
        assert resume_stuck_documents(session, embedder=other.name) == 0
        retry_document(session, doc_id=doc_id)
    Ingestion(container.transaction, other).run(doc_id)
    with container.transaction() as session:
        row = document_row(session, doc_id)
    assert (row.state, row.error, len(other.passages)) == (DocState.ACTIVE, None, 2)


def test_a_document_that_waits_for_its_next_turn_is_not_forgotten_when_the_turn_before_ends(
    container: Container,
) -> None:
    key = new_id()
    container.queue.enqueue(Job(JobName.INGEST_DOCUMENT, key))
    running = Queue(QUEUE_OF[JobName.INGEST_DOCUMENT], connection=container.redis).fetch_job(str(key))
    assert running is not None
    container.redis.delete(f"rq:queue:{running.origin}")

    container.queue.enqueue(Job(JobName.INGEST_DOCUMENT, key))
    running.cleanup(running.get_result_ttl(default_ttl=500))

    assert container.redis.ttl(running.key) > 3_600


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
    sections = [f"## 第{n}节\n\n第{n}节说明第{n}种情况下的处理办法，" + "请您按照页面提示操作。" * 8 for n in range(16)]
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
    assert before <= done < 16
    assert found_texts(search, "第3节") == []

    age(container, doc_id, leased_for="-1 second")
    while not is_active(container, doc_id):
        ingestion.run(doc_id)

    assert len(embedder.passages) == 16 - done
    with container.transaction() as session:
        assert session.scalar(select(func.count()).select_from(KnowledgeChunk)) == 16
    assert found_texts(search, "第3节")
    assert statistics_are_right(container)


def wait_for_vectors(container: Container, doc_id: UUID) -> int:
    """Wait until a process has stored its first vectors."""
    for _ in range(600):
        with container.transaction() as session:
            if count := document_row(session, doc_id).embedded_count:
                return count
        time.sleep(0.05)
    raise AssertionError("no vector within 30 seconds")
