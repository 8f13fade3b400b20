"""Approving: once, by one person, of what they saw, and only what may leave."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from uuid import UUID

import pytest
from rq import Queue
from sqlalchemy import func, select, update

from app.bootstrap import Container
from app.db.base import Base
from app.db.signals import JobName
from app.delivery.models import Delivery
from app.errors import AppError, InvalidInput, NotFound
from app.ids import new_id
from app.knowledge.models import DocState
from app.knowledge.service import delete_document
from app.live.job_queue import DELIVERY
from app.review import service
from app.review.contract import Change, Seen, SeenIsStale, TextBlocked
from app.review.models import ApprovalKey
from app.review.reply import SentReply
from app.review.service import Approved
from app.runs.lifecycle import RunMoved
from app.runs.models import Artifact, ArtifactType, Event, Run, RunStatus
from app.staff.models import AuditEntry
from app.tickets.models import Ticket
from tests.factories import make_staff, make_ticket
from tests.review.factories import DRAFT_TEXT, Desk, add_draft, make_desk, make_document, see

EDITED = DRAFT_TEXT.replace("请换一件自营商品再试", "换成自营商品就能用了")


def approve(
    container: Container,
    desk: Desk,
    text: str = DRAFT_TEXT,
    *,
    key: str = "form-1",
    staff_id: UUID | None = None,
    seen: Seen | None = None,
) -> Approved:
    with container.transaction() as session:
        return service.approve(
            session,
            ticket_id=desk.ticket_id,
            staff_id=staff_id or desk.staff_id,
            text=text,
            seen=seen or desk.seen,
            key=key,
        )


def count(container: Container, model: type[Base]) -> int:
    with container.transaction() as session:
        return session.scalars(select(func.count()).select_from(model)).one()


def sent_replies(container: Container) -> list[SentReply]:
    with container.transaction() as session:
        contents = session.scalars(select(Artifact.content).where(Artifact.type == ArtifactType.SENT_REPLY)).all()
    return [SentReply.model_validate(content) for content in contents]


def run_status(container: Container, run_id: UUID) -> str:
    with container.transaction() as session:
        return session.get_one(Run, run_id).status


def test_the_draft_as_it_is(container: Container) -> None:
    desk = make_desk(container)
    approved = approve(container, desk)
    assert not approved.edited
    reply = sent_replies(container)[0]
    assert (reply.text, reply.draft_id, reply.changed_percent, reply.origin) == (
        DRAFT_TEXT,
        desk.seen.draft_id,
        0,
        "extract",
    )
    assert [citation.ref for citation in reply.citations] == ["kb-1"]
    with container.transaction() as session:
        run = session.get_one(Run, desk.run_id)
        assert (run.status, run.moved_by) == ("completed", desk.staff_id)
        assert run.ended_at is not None
        events = session.scalars(select(Event).order_by(Event.seq)).all()
        assert [event.type for event in events] == ["run_created", "reply_approved", "run_completed"]
        delivery = session.scalars(select(Delivery)).one()
        assert (delivery.artifact_id, delivery.state, delivery.channel) == (approved.artifact_id, "held", "web")
        assert delivery.payload["text"] == DRAFT_TEXT
        assert delivery.payload["recipient"] == "C-1001"
        entry = session.scalars(select(AuditEntry)).one()
        assert (entry.action, entry.staff_id, entry.run_id) == ("reply_approved", desk.staff_id, desk.run_id)
        assert session.get_one(Ticket, desk.ticket_id).status == "pending"
    jobs = Queue(DELIVERY, connection=container.redis).jobs
    assert [(job.func_name, job.args) for job in jobs] == [(JobName.DELIVER_REPLY.value, (str(delivery.id),))]


def test_an_edited_text_is_kept_with_its_diff(container: Container) -> None:
    desk = make_desk(container)
    approved = approve(container, desk, f"  {EDITED}\r\n")
    assert approved.edited
    reply = sent_replies(container)[0]
    assert reply.text == EDITED
    assert "".join(segment.text for segment in reply.diff if segment.op != "ins") == DRAFT_TEXT
    assert "".join(segment.text for segment in reply.diff if segment.op != "del") == EDITED
    assert 0 < reply.changed_percent < 100


@pytest.mark.parametrize("status", [RunStatus.WAITING_FOR_REVIEW, RunStatus.WAITING_FOR_ESCALATION])
def test_without_a_draft_a_person_writes(container: Container, status: RunStatus) -> None:
    desk = make_desk(container, status=status, draft=False)
    assert not approve(container, desk, "您好，已为您转交商家核实。").edited
    reply = sent_replies(container)[0]
    assert (reply.draft_id, reply.origin, reply.diff, reply.citations) == (None, "person", (), ())


def test_the_same_approval_again_gets_the_same_reply(container: Container) -> None:
    desk = make_desk(container)
    assert approve(container, desk) == approve(container, desk)
    assert len(sent_replies(container)) == count(container, Delivery) == 1


def test_the_same_key_with_another_text_sends_nothing(container: Container) -> None:
    desk = make_desk(container)
    approve(container, desk)
    with pytest.raises(RunMoved) as refused:
        approve(container, desk, EDITED)
    assert refused.value.by == desk.staff_id
    assert [reply.text for reply in sent_replies(container)] == [DRAFT_TEXT]


def test_a_key_of_another_ticket_is_refused(container: Container) -> None:
    approve(container, make_desk(container))
    other = make_desk(container)
    with pytest.raises(InvalidInput):
        approve(container, other)
    assert run_status(container, other.run_id) == "waiting_for_review"
    assert count(container, ApprovalKey) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "nul\x00"])
def test_bad_keys(container: Container, key: str) -> None:
    with pytest.raises(InvalidInput):
        approve(container, make_desk(container), key=key)


def at_once(calls: list[Callable[[], Approved]]) -> list[Approved | BaseException]:
    start = Barrier(len(calls))

    def run(call: Callable[[], Approved]) -> Approved:
        start.wait(timeout=10)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(run, call) for call in calls]
    return [future.exception() or future.result() for future in futures]


def test_two_people_at_once_send_one_reply(container: Container) -> None:
    desk = make_desk(container)
    people = [desk.staff_id, make_staff(container, "lead")]
    results = at_once(
        [
            lambda: approve(container, desk, key="one", staff_id=people[0]),
            lambda: approve(container, desk, EDITED, key="two", staff_id=people[1]),
        ]
    )
    winner = next(index for index, result in enumerate(results) if isinstance(result, Approved))
    loser = results[1 - winner]
    assert isinstance(loser, RunMoved)
    assert (loser.by, loser.run_status) == (people[winner], "completed")
    assert loser.at is not None
    assert len(sent_replies(container)) == count(container, Delivery) == 1


def test_one_click_many_times_at_once(container: Container) -> None:
    desk = make_desk(container)
    results = at_once([lambda: approve(container, desk)] * 6)
    assert len(set(results)) == 1
    assert isinstance(results[0], Approved)
    assert count(container, Delivery) == 1


def newer_draft(container: Container, desk: Desk) -> None:
    add_draft(container, desk.run_id, EDITED)


def customer_writes(container: Container, desk: Desk) -> None:
    set_on_ticket(container, desk, last_customer_message_id=new_id())


def colleague_replies(container: Container, desk: Desk) -> None:
    set_on_ticket(container, desk, last_reply_id=new_id())


def set_on_ticket(container: Container, desk: Desk, **values: UUID) -> None:
    with container.transaction() as session:
        session.execute(update(Ticket).where(Ticket.id == desk.ticket_id).values(**values))


@pytest.mark.parametrize(
    ("move", "change"),
    [
        (newer_draft, Change.DRAFT),
        (customer_writes, Change.CUSTOMER_MESSAGE),
        (colleague_replies, Change.REPLY),
    ],
)
def test_what_moved_since_the_look_stops_it(
    container: Container, move: Callable[[Container, Desk], None], change: Change
) -> None:
    desk = make_desk(container)
    move(container, desk)
    with pytest.raises(SeenIsStale) as refused:
        approve(container, desk)
    assert refused.value.changes == (change,)
    assert run_status(container, desk.run_id) == "waiting_for_review"
    assert approve(container, desk, seen=see(container, desk.ticket_id))


@pytest.mark.parametrize("state", [DocState.ARCHIVED, DocState.ACTIVE])
def test_a_cited_document_that_is_gone_stops_it(container: Container, state: DocState) -> None:
    """The draft cites two documents; one of them is replaced, or another one that it does not cite."""
    desk = make_desk(container, draft=False)
    cited, other = make_document(container, "退款"), make_document(container, "发票")
    add_draft(container, desk.run_id, DRAFT_TEXT, doc_id=cited)
    seen = see(container, desk.ticket_id)
    gone = cited if state is DocState.ARCHIVED else other
    with container.transaction() as session:
        delete_document(session, doc_id=gone, staff_id=desk.staff_id)
    if gone == other:
        assert approve(container, desk, seen=seen)
        return
    with pytest.raises(SeenIsStale) as refused:
        approve(container, desk, seen=seen)
    assert refused.value.changes == (Change.SOURCES,)
    assert count(container, Delivery) == 0
    assert approve(container, desk, seen=see(container, desk.ticket_id))


def test_rules_that_changed_stop_it(container: Container) -> None:
    desk = make_desk(container)
    with pytest.raises(SeenIsStale) as refused:
        approve(container, desk, seen=replace(desk.seen, lint_version="yesterday", draft_digest="other"))
    assert refused.value.changes == (Change.DRAFT, Change.RULES)


def test_the_server_checks_the_text_again(container: Container) -> None:
    desk = make_desk(container)
    with pytest.raises(TextBlocked) as refused:
        approve(container, desk, DRAFT_TEXT + "可致电13812345678。")
    assert [finding.text for finding in refused.value.findings] == ["13812345678"]
    assert run_status(container, desk.run_id) == "waiting_for_review"
    assert count(container, Delivery) == 0


@pytest.mark.parametrize("text", ["", " \n ", "\u200b", "字" * 10_001, "a\x00b"])
def test_texts_that_are_none(container: Container, text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        approve(container, make_desk(container), text)
    assert refused.value.field == "text"


@pytest.mark.parametrize(
    "status", [RunStatus.CREATED, RunStatus.RUNNING, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.SUPERSEDED]
)
def test_only_a_waiting_run_can_be_approved(container: Container, status: RunStatus) -> None:
    desk = make_desk(container, status=status)
    with pytest.raises(RunMoved) as refused:
        approve(container, desk)
    assert refused.value.run_status == status


def test_a_run_of_another_ticket_is_not_found(container: Container) -> None:
    desk = make_desk(container)
    other = make_ticket(container)
    with pytest.raises(NotFound):
        approve(container, desk, seen=replace(desk.seen, run_id=other.run_id))


def test_nothing_is_written_when_the_outbox_breaks(container: Container) -> None:
    desk = make_desk(container)
    with container.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE deliveries ADD CONSTRAINT broken CHECK (false) NOT VALID")
    try:
        with pytest.raises(Exception, match="broken") as failed:
            approve(container, desk)
    finally:
        with container.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE deliveries DROP CONSTRAINT broken")
    assert not isinstance(failed.value, AppError)
    assert sent_replies(container) == []
    assert run_status(container, desk.run_id) == "waiting_for_review"
    assert Queue(DELIVERY, connection=container.redis).count == 0
