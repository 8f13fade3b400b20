"""Whatever customers, people, workers and senders do in whatever order, no ticket takes a path that there is not."""

from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Engine, func, select, update
from sqlalchemy.orm import Session

from app.bootstrap import Container
from app.delivery.models import Delivery
from app.delivery.service import deliver
from app.errors import Conflict, InvalidInput
from app.ids import new_id
from app.intake.messages import MessageWindow
from app.review import service
from app.review.ticket_state import CHOICES, set_ticket_status
from app.runs.events import NewEvent, lock_thread
from app.runs.lifecycle import active_run, latest_run, move_run
from app.runs.models import ACTIVE, Event, EventType, Run, RunStatus
from app.tickets.lifecycle import MOVES
from app.tickets.models import DONE, MessageKind, Ticket, TicketMessage, TicketStatus
from tests.delivery.channels import Broken, Outside, Refusing
from tests.delivery.test_recall import Writing
from tests.factories import make_staff, make_ticket
from tests.intake.writing import write
from tests.review.factories import add_draft, see
from tests.support.witness import moves_seen, witnessed

WINDOWS = st.sampled_from([MessageWindow(0, 0, 14), MessageWindow(30, 120, 14), MessageWindow(30, 120, 0)])

ENDS = st.sampled_from([Outside, Refusing, Broken])


class Everybody(RuleBasedStateMachine):
    """One ticket, and all who act on it."""

    container: ClassVar[Container]

    @initialize()
    def arrive(self) -> None:
        self.staff_id = make_staff(self.container)
        self.made = make_ticket(self.container)
        self.at = self.made.ticket_id

    def _try(self, act: Callable[[Session], object]) -> None:
        """Do something that may be refused, in words; anything else that is raised is a fault."""
        with suppress(Conflict, InvalidInput), self.container.transaction() as session:
            act(session)

    @rule(window=WINDOWS)
    def customer_writes(self, window: MessageWindow) -> None:
        received = write(self.container, self.at, window=window)
        self.at = received.ticket_id
        with self.container.transaction() as session:
            ticket = session.get_one(Ticket, self.at)
            assert ticket.last_customer_message_id == received.message_id
            if ticket.status == TicketStatus.SPAM:
                return
            run = active_run(session, lock_thread(session, self.at).id)
            assert run is not None
            assert run.id == received.run_id
            assert run.last_customer_message_id == received.message_id
            assert ticket.status not in DONE

    @rule(choice=st.sampled_from(CHOICES))
    def person_moves(self, choice: TicketStatus) -> None:
        who = {"ticket_id": self.at, "staff_id": self.staff_id}
        self._try(lambda session: set_ticket_status(session, **who, target=choice))

    @rule(end=ENDS, crosses=st.booleans())
    def a_draft_goes_all_the_way(self, end: type[Outside], crosses: bool) -> None:
        self.worker_claims()
        self.worker_ends(RunStatus.WAITING_FOR_REVIEW)
        self.person_approves()
        self.sender_sends(end, crosses)

    @rule(window=WINDOWS)
    def customer_writes_on_a_closed_ticket(self, window: MessageWindow) -> None:
        self.person_moves(TicketStatus.CLOSED)
        self.customer_writes(window)

    @rule()
    def person_approves(self) -> None:
        seen = see(self.container, self.at)
        who = {"ticket_id": self.at, "staff_id": self.staff_id}
        self._try(lambda session: service.approve(session, **who, text="您好", seen=seen, key=new_id().hex))

    @rule(command=st.sampled_from([service.regenerate, service.start_manual]))
    def person_starts_over(self, command: Callable[..., UUID]) -> None:
        hint = {"hint": ""} if command is service.regenerate else {}
        who = {"ticket_id": self.at, "staff_id": self.staff_id}
        self._try(lambda session: command(session, **who, plan=self.container.run_plan(), **hint))

    @rule(command=st.sampled_from([service.cancel_run, service.escalate]))
    def person_stops_or_escalates(self, command: Callable[..., None]) -> None:
        reason = {"reason": "x"} if command is service.escalate else {}
        who = {"ticket_id": self.at, "staff_id": self.staff_id}
        self._try(lambda session: command(session, **who, run_id=self._newest(session).id, **reason))

    @rule()
    def worker_claims(self) -> None:
        with self.container.transaction() as session:
            run = self._newest(session)
            if run.status == RunStatus.CREATED:
                session.execute(update(Run).where(Run.id == run.id).values(status=RunStatus.RUNNING))
                pending = update(Ticket).where(Ticket.id == self.at, Ticket.status == TicketStatus.PENDING)
                session.execute(pending.values(status=TicketStatus.PROCESSING))

    @rule(end=st.sampled_from([RunStatus.WAITING_FOR_REVIEW, RunStatus.FAILED, RunStatus.RETRYING]))
    def worker_ends(self, end: RunStatus) -> None:
        with self.container.transaction() as session:
            thread = lock_thread(session, self.at)
            run = self._newest(session)
            if run.status != RunStatus.RUNNING:
                return
            move_run(session, thread, run.id, end, [NewEvent(EventType.TICKET_CHANGED, run.id)])
        if end is RunStatus.WAITING_FOR_REVIEW:
            add_draft(self.container, run.id, "草稿")

    @rule(end=ENDS, crosses=st.booleans())
    def sender_sends(self, end: type[Outside], crosses: bool) -> None:
        with self.container.transaction() as session:
            held = session.scalar(select(Delivery.id).where(Delivery.ticket_id == self.at, Delivery.state == "held"))
        at = self.at
        if held is not None:
            channel = Writing(lambda: write(self.container, at), end()) if crosses else end()
            deliver(self.container.transaction, held, [channel])

    def _newest(self, session: Session) -> Run:
        run = latest_run(session, lock_thread(session, self.at).id)
        assert run is not None
        return run

    @invariant()
    def only_moves_that_there_are(self) -> None:
        with self.container.transaction() as session:
            moves = moves_seen(session)
            assert all(TicketStatus(target) in MOVES[TicketStatus(source)] for source, target in moves), moves
            told = session.scalars(select(Event.payload).where(Event.type == EventType.TICKET_MOVED)).all()
            assert {(payload["from"], payload["to"]) for payload in told} <= moves

    @invariant()
    def nothing_works_on_what_is_done(self) -> None:
        with self.container.transaction() as session:
            for ticket in session.scalars(select(Ticket).where(Ticket.status.in_(DONE))):
                at_work = select(Run.id).where(Run.ticket_id == ticket.id, Run.status.in_(ACTIVE))
                held = select(Delivery.id).where(Delivery.ticket_id == ticket.id, Delivery.state == "held")
                assert session.scalars(at_work).all() == session.scalars(held).all() == []

    @invariant()
    def one_message_for_each_reply_that_left(self) -> None:
        with self.container.transaction() as session:
            sent = select(func.count()).where(Delivery.state == "sent")
            replies = select(func.count()).where(TicketMessage.kind == MessageKind.REPLY)
            assert session.scalars(sent).one() == session.scalars(replies).one()


def test_no_sequence_of_calls_reaches_a_move_that_there_is_not(container: Container, admin_engine: Engine) -> None:
    machine = type("EverybodyHere", (Everybody,), {"container": container})
    with witnessed(admin_engine, "tickets"):
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=60,
                stateful_step_count=20,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
