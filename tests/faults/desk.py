"""What a web process does for people and customers: the services that pages and the API call, a transaction each."""

import random
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from redis import RedisError
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from app.agent.values import Category, Priority
from app.bootstrap import Container
from app.errors import AppError
from app.ids import new_id
from app.intake.fields import parse_new_ticket
from app.intake.messages import receive_message
from app.intake.models import IntakeKey
from app.intake.service import receive_ticket
from app.review.contract import Seen, seen_now, sources_in_use, stored_draft
from app.review.service import approve, cancel_run, escalate, regenerate, start_manual
from app.review.ticket_class import set_class
from app.review.ticket_state import set_ticket_status
from app.runs.events import lock_thread
from app.runs.lifecycle import RunPlan, latest_run
from app.staff.models import Role, Staff
from app.tickets.models import Ticket, TicketStatus
from tests.faults.script import Action, What

SOURCE = "faults"
REPLY = "您好，已经为您核实并处理，请留意短信通知。"
Answer = dict[str, Any]


class _NotThere(Exception):
    """The ticket has not been received yet, or has no run to act on."""


class Desk:
    """Does what it is told and says how that went: "ok", "refused:code", "lost:Error" or "broken" with a traceback."""

    def __init__(self, parts: Container, run_timeout_ms: int) -> None:
        self._parts = parts
        self._run_timeout_ms = run_timeout_ms
        self._does: dict[What, Callable[[Action], Answer]] = {
            What.TICKET: self._ticket,
            What.MESSAGE: self._message,
            What.APPROVE: self._approve,
            What.CANCEL: self._cancel,
            What.REGENERATE: self._regenerate,
            What.MANUAL: self._manual,
            What.ESCALATE: self._escalate,
            What.STATUS: self._status,
            What.CLASS: self._class,
            What.STORM: self._storm,
        }

    def do(self, command: dict[str, Any]) -> Answer:
        """Do one command."""
        action = Action.model_validate(command["action"])
        return {"id": command["id"], **self._attempt(action)}

    def _attempt(self, action: Action) -> Answer:
        try:
            return {"result": "ok", **self._does[action.what](action)}
        except _NotThere:
            return {"result": "refused:not_there"}
        except AppError as refusal:
            return {"result": f"refused:{refusal.code}"}
        except (OperationalError, InterfaceError, RedisError) as error:
            return {"result": f"lost:{type(error).__name__}", "told": _told(error)}
        except Exception:
            return {"result": "broken", "told": traceback.format_exc()[-2000:]}

    def _ticket(self, action: Action) -> Answer:
        fields = {
            "customer_id": f"C-{action.ticket % 2}",
            "customer_name": "陈雨桐",
            "subject": "退款多久到账",
            "content": "上周申请的退款还没有到，请问多久能到账？",
            "channel": "web",
        }
        key = f"ticket-{action.ticket}"
        with self._parts.transaction() as session:
            made = receive_ticket(session, source=SOURCE, key=key, new=parse_new_ticket(fields), plan=self._plan())
        return {"ticket": str(made.ticket_id)}

    def _message(self, action: Action) -> Answer:
        with self._parts.transaction() as session:
            received = receive_message(
                session,
                source=SOURCE,
                key=action.key,
                ticket_id=self._ticket_of(session, action),
                body=action.text,
                plan=self._plan(),
                window=self._parts.message_window,
            )
        return {"message": str(received.message_id)}

    def _status(self, action: Action) -> Answer:
        with self._parts.transaction() as session:
            ticket_id = self._ticket_of(session, action)
            set_ticket_status(
                session, ticket_id=ticket_id, target=TicketStatus(action.text), staff_id=self._staff(session)
            )
        return {}

    def _approve(self, action: Action) -> Answer:
        seen, text = self._look(action)
        with self._parts.transaction() as session:
            approved = approve(
                session,
                ticket_id=self._ticket_of(session, action),
                staff_id=self._staff(session),
                text=text,
                seen=seen,
                key=action.key,
            )
        return {"artifact": str(approved.artifact_id)}

    def _look(self, action: Action) -> tuple[Seen, str]:
        """Open the ticket's page: what is seen there is what a later approval speaks of."""
        with self._parts.transaction() as session:
            ticket_id = self._ticket_of(session, action)
            thread = lock_thread(session, ticket_id)
            run = latest_run(session, thread.id)
            if run is None:
                raise _NotThere
            stored = stored_draft(session, run.id)
            seen = seen_now(session.get_one(Ticket, ticket_id), run, stored, sources_in_use(session, stored))
            return seen, action.text or (stored.draft.text if stored else REPLY)

    def _cancel(self, action: Action) -> Answer:
        with self._parts.transaction() as session:
            ticket_id, run_id = self._newest(session, action)
            cancel_run(session, ticket_id=ticket_id, run_id=run_id, staff_id=self._staff(session))
        return {}

    def _regenerate(self, action: Action) -> Answer:
        with self._parts.transaction() as session:
            staff_id = self._staff(session)
            ticket_id = self._ticket_of(session, action)
            regenerate(session, ticket_id=ticket_id, staff_id=staff_id, hint=action.text, plan=self._plan(staff_id))
        return {}

    def _manual(self, action: Action) -> Answer:
        with self._parts.transaction() as session:
            staff_id = self._staff(session)
            ticket_id = self._ticket_of(session, action)
            start_manual(session, ticket_id=ticket_id, staff_id=staff_id, plan=self._plan(staff_id))
        return {}

    def _escalate(self, action: Action) -> Answer:
        with self._parts.transaction() as session:
            ticket_id, run_id = self._newest(session, action)
            staff_id = self._staff(session)
            escalate(session, ticket_id=ticket_id, run_id=run_id, staff_id=staff_id, reason="请主管看一下")
        return {}

    def _class(self, action: Action) -> Answer:
        priority, category = action.text.split()
        with self._parts.transaction() as session:
            ticket_id = self._ticket_of(session, action)
            set_class(
                session,
                ticket_id=ticket_id,
                staff_id=self._staff(session),
                seen_version=session.get_one(Ticket, ticket_id).version,
                priority=Priority(priority),
                category=Category(category),
                confirm=True,
            )
        return {}

    def _storm(self, action: Action) -> Answer:
        """Do many things at once on the tickets 0 to `ticket`: `lasts` of them in each of four threads."""
        results: list[Answer] = []
        threads = [threading.Thread(target=self._gust, args=(action, number, results)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        worst = [result for result in results if result["result"] == "broken"]
        counts = {what: sum(result["result"] == what for result in results) for what in ("ok",)}
        return worst[0] if worst else {"did": counts}

    def _gust(self, storm: Action, number: int, results: list[Answer]) -> None:
        dice = random.Random(f"{storm.key}-{number}")  # noqa: S311 - drawn again from the same seed
        for count in range(int(storm.lasts)):
            what = dice.choice([What.MESSAGE, What.APPROVE, What.CLASS, What.REGENERATE, What.CANCEL, What.ESCALATE])
            texts = {What.CLASS: "urgent refund", What.MESSAGE: "还没有收到，请再看一下。"}
            key = f"{storm.key}-{number}-{count}"
            action = Action(what=what, ticket=dice.randint(0, storm.ticket), key=key, text=texts.get(what, ""))
            results.append(self._attempt(action))

    def _plan(self, by: UUID | None = None) -> RunPlan:
        return replace(self._parts.run_plan(by=by), timeout_ms=self._run_timeout_ms)

    @staticmethod
    def _ticket_of(session: Session, action: Action) -> UUID:
        known = select(IntakeKey.ticket_id).where(
            IntakeKey.source == SOURCE, IntakeKey.key == f"ticket-{action.ticket}"
        )
        ticket_id = session.scalar(known)
        if ticket_id is None:
            raise _NotThere
        return ticket_id

    def _newest(self, session: Session, action: Action) -> tuple[UUID, UUID]:
        """Return the ticket and its newest run as a page shows them, without a lock."""
        ticket_id = self._ticket_of(session, action)
        run = latest_run(session, lock_thread(session, ticket_id).id)
        if run is None:
            raise _NotThere
        return ticket_id, run.id

    @staticmethod
    def _staff(session: Session) -> UUID:
        return session.scalars(select(Staff.id).limit(1)).one()


def make_staff(parts: Container) -> None:
    """Make the one person who sits at all desks."""
    with parts.transaction() as session:
        session.add(Staff(id=new_id(), username="agent", display_name="agent", password_hash="-", role=Role.AGENT))


def _told(error: Exception) -> str:
    """Return what the database said."""
    return str(error.orig) if isinstance(error, DBAPIError) else str(error)
