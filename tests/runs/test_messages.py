"""Messages and workers: a run answers what is unanswered, and never goes on from words that are out of date."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from sqlalchemy import func, select, text, update

from app.agent.ports import CallLog
from app.agent.values import Category, Classification, Priority, TicketFacts
from app.bootstrap import Container
from app.ids import new_id
from app.intake.messages import MessageWindow, receive_message
from app.review import service
from app.review.ticket_class import set_class
from app.runs.ledger import CONTENT_LIMIT
from app.runs.models import Run, RunStatus
from app.tickets.models import Ticket
from tests.agent.parts import FixedClassifier
from tests.delivery.channels import Outside
from tests.delivery.test_deliver import approved, send
from tests.delivery.test_recall import Writing
from tests.factories import make_staff, make_ticket
from tests.intake.writing import end_run, run_of, runs_of, ticket_of, write
from tests.review.factories import make_desk
from tests.runs.conftest import StartRuntime, make_agent
from tests.support.waiting import until

NOW = MessageWindow(wait_s=0, most_s=0, reopen_days=14)


@dataclass
class ReadingClassifier(FixedClassifier):
    """Keeps what it was given to read."""

    read: list[str] = field(default_factory=list)

    async def classify(self, ticket: TicketFacts, calls: CallLog) -> Classification:
        self.read.append(ticket.content)
        return await super().classify(ticket, calls)


def is_waiting(container: Container) -> bool:
    """Say whether a connection waits for another one's lock."""
    with container.engine.connect() as connection:
        return bool(connection.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")))


def test_a_run_reads_what_no_reply_has_answered(container: Container, start_runtime: StartRuntime) -> None:
    desk, first = approved(container)
    send(container, first)
    classifier = ReadingClassifier()
    runtime = start_runtime(make_agent(classifier=classifier))
    write(container, desk.ticket_id, "第二封", window=NOW)
    received = write(container, desk.ticket_id, "第三封", window=NOW)
    assert received.run_id is not None
    runtime.execute(received.run_id)
    assert classifier.read == ["第二封\n\n第三封"]
    assert run_of(container, received.run_id).status == "waiting_for_review"


def test_a_run_reads_the_newest_of_what_is_too_long(container: Container, start_runtime: StartRuntime) -> None:
    made, classifier = make_ticket(container, content="一" * 9_000), ReadingClassifier()
    for letter in ("二", "三"):
        run_id = write(container, made.ticket_id, letter * 9_000, window=NOW).run_id
    assert run_id is not None
    start_runtime(make_agent(classifier=classifier)).execute(run_id)
    room = CONTENT_LIMIT - 2 * len("\n\n") - 18_000
    assert classifier.read == ["\n\n".join(("一" * room, "二" * 9_000, "三" * 9_000))]


def test_a_message_that_crossed_is_read_though_the_reply_came_after_it(
    container: Container, start_runtime: StartRuntime
) -> None:
    desk, first = approved(container)
    crossing = Writing(lambda: write(container, desk.ticket_id, "路上的信", window=NOW), Outside())
    send(container, first, [crossing])
    classifier = ReadingClassifier()
    run_id = runs_of(container, desk.ticket_id)[-1].id
    start_runtime(make_agent(classifier=classifier)).execute(run_id)
    assert classifier.read == ["路上的信"]


def test_a_run_with_a_window_is_not_claimed_before_its_time(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    write(container, made.ticket_id)
    runtime = start_runtime()
    runtime.execute(made.run_id)
    assert run_of(container, made.run_id).status == "created"
    with container.transaction() as session:
        session.execute(update(Run).values(not_before=func.now()))
    runtime.execute(made.run_id)
    assert run_of(container, made.run_id).status == "waiting_for_review"


def test_a_claim_that_a_message_overtakes_reads_the_message_too(
    container: Container, start_runtime: StartRuntime
) -> None:
    made = make_ticket(container)
    classifier = ReadingClassifier()
    runtime = start_runtime(make_agent(classifier=classifier))
    with ThreadPoolExecutor(1) as pool:
        with container.sessions() as session, session.begin():
            receive_message(
                session,
                source="tests",
                key=str(new_id()),
                ticket_id=made.ticket_id,
                body="等等",
                plan=container.run_plan(),
                window=NOW,
            )
            claim = pool.submit(runtime.execute, made.run_id)
            until(lambda: is_waiting(container))
        claim.result(timeout=20)
    assert run_of(container, made.run_id).status == "waiting_for_review"
    assert len(classifier.read) == 1
    assert classifier.read[0].endswith("\n\n等等")


def test_a_message_that_a_claim_overtakes_supersedes_the_run(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    runtime = start_runtime()
    runtime.execute(made.run_id)
    received = write(container, made.ticket_id, window=NOW)
    assert run_of(container, made.run_id).status == "superseded"
    assert received.run_id is not None
    runtime.execute(received.run_id)
    assert run_of(container, received.run_id).status == "waiting_for_review"


def test_a_message_run_overwrites_neither_a_persons_class_nor_an_escalation(
    container: Container, start_runtime: StartRuntime
) -> None:
    desk = make_desk(container)
    with container.transaction() as session:
        service.escalate(
            session, ticket_id=desk.ticket_id, run_id=desk.run_id, staff_id=desk.staff_id, reason="需要法务确认"
        )
        set_class(
            session,
            ticket_id=desk.ticket_id,
            staff_id=make_staff(container),
            seen_version=session.get_one(Ticket, desk.ticket_id).version,
            priority=Priority.NORMAL,
            category=Category.INVOICE,
        )
    received = write(container, desk.ticket_id, window=NOW)
    assert received.run_id is not None
    start_runtime().execute(received.run_id)
    ticket = ticket_of(container, desk.ticket_id)
    assert (ticket.priority, ticket.category) == ("normal", "invoice")
    assert (ticket.priority_set_by, ticket.category_set_by) == ("person", "person")
    assert ticket.escalation_reason == "需要法务确认"
    assert run_of(container, received.run_id).status == "waiting_for_review"


def at_once(container: Container, ticket_id: object, bodies: Sequence[str]) -> None:
    with ThreadPoolExecutor(len(bodies)) as pool:
        for future in [pool.submit(write, container, ticket_id, body) for body in bodies]:  # type: ignore[arg-type]
            future.result(timeout=20)


def test_messages_at_once_are_numbered_and_answered_together(container: Container) -> None:
    made = make_ticket(container)
    end_run(container, made.run_id, RunStatus.RUNNING)
    at_once(container, made.ticket_id, [f"第{number}句" for number in range(6)])
    old, new = runs_of(container, made.ticket_id)
    assert (old.status, new.status) == ("superseded", "created")
    with container.transaction() as session:
        ticket = session.get_one(Ticket, made.ticket_id)
        assert ticket.last_customer_message_id == new.last_customer_message_id
        assert session.scalars(select(func.count()).select_from(Run)).one() == 2
