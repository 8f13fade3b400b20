"""The product's run path as a subject of a peer bench: tables of its own schema, five model calls, approval.

    python langgraph_peer.py --subject ours=bench.peer_subject:RunPath --subject calls --subject langgraph ...

A subject is opened with {"pg": dsn with a search_path, "redis": url, "llm": base url}; `start` drives one run to its
review, `resume` approves it. `Subject` does what the product does from the arrival of a ticket to the approved reply;
`RunPath` starts from a ticket that is there, like the peers, and approves by the rows alone. The knowledge base is a
constant, like the peers'.
"""

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker

from app.agent.loop import Agent
from app.agent.values import Passage, SearchResult, Sufficiency, Verdict
from app.db.session import make_sessions, transaction
from app.db.signals import EventFact, Signals
from app.guard.evidence import cite_sentences
from app.ids import new_id
from app.intake.fields import parse_new_ticket
from app.intake.service import receive_ticket
from app.live.background import BackgroundPublisher
from app.live.publisher import Publisher
from app.llm.classifier import ModelClassifier
from app.llm.client import ChatClient
from app.llm.drafter import ModelDrafter
from app.llm.planner import ModelPlanner
from app.review.contract import seen_now, sources_in_use, stored_draft
from app.review.service import approve
from app.runs.executor import Executor
from app.runs.leases import LEASE_S, HeldRuns
from app.runs.ledger import Ledger, make_pool
from app.runs.lifecycle import RunPlan
from app.runs.models import EventType, Run
from app.settings import Settings
from app.skills import make_skills
from app.staff.models import Role, Staff
from app.tables import metadata
from app.tickets.models import Customer, Ticket

CONTENT = "我上周三申请的退款,页面显示已经通过,但是银行卡还没有收到钱。请问一般要几天?" * 3
TICKET = {"customer_id": "c-1", "subject": "退款到账要多久", "content": CONTENT}
RULE = "退款审核通过后,资金将在三到五个工作日内原路退回;节假日顺延。" * 10
CREATE = """
WITH i AS (
    INSERT INTO tickets (id, customer_id, channel, subject, status, last_customer_message_id, version)
    VALUES (%(ticket)s, %(customer)s, 'web', %(subject)s, 'pending', %(message)s, 1)
  ),
  q AS (INSERT INTO intake_keys (source, key, digest, ticket_id) VALUES ('bench', %(run)s::text, '-', %(ticket)s)),
  m AS (
    INSERT INTO ticket_messages (id, ticket_id, number, kind, body)
    VALUES (%(message)s, %(ticket)s, 1, 'customer', %(content)s)
  ),
  t AS (
    INSERT INTO threads (id, ticket_id, last_seq, published_seq) VALUES (%(thread)s, %(ticket)s, 1, 0)
  ),
  r AS (
    INSERT INTO runs (id, thread_id, ticket_id, status, planner, max_steps, cur_step, timeout_ms, model_planned,
                      tokens_in, tokens_out, cost_micro, fence, last_customer_message_id)
    VALUES (%(run)s, %(thread)s, %(ticket)s, 'created', 'model', 5, 0, 120000, 'stub', 0, 0, 0, 0, %(message)s)
  )
INSERT INTO events (thread_id, seq, run_id, type, payload)
VALUES (%(thread)s, 1, %(run)s, 'run_created', '{"planner": "model"}')
"""
APPROVE = """
WITH t AS (
    UPDATE threads SET last_seq = last_seq + 2 WHERE ticket_id = %(ticket)s RETURNING id, last_seq
  ),
  g AS (
    UPDATE runs SET status = 'completed', moved_by = %(staff)s, moved_at = now(), ended_at = now()
      FROM t WHERE runs.id = %(run)s AND runs.thread_id = t.id AND runs.status = 'waiting_for_review'
    RETURNING runs.id, runs.ticket_id
  ),
  a AS (
    INSERT INTO artifacts (id, run_id, type, version, content, staff_id)
    SELECT %(artifact)s, g.id, 'sent_reply', 1, jsonb_build_object('text', d.content -> 'text', 'draft_id', d.id,
           'edited', false, 'citations', d.content -> 'citations', 'origin', d.content -> 'origin'), %(staff)s
      FROM g JOIN artifacts d ON d.run_id = g.id AND d.type = 'draft'
  ),
  o AS (
    INSERT INTO deliveries (id, artifact_id, ticket_id, channel, payload, state, not_before, attempts)
    SELECT %(delivery)s, %(artifact)s, g.ticket_id, 'web', d.content -> 'text', 'held', now(), 0
      FROM g JOIN artifacts d ON d.run_id = g.id AND d.type = 'draft'
  ),
  q AS (
    INSERT INTO approval_keys (key, staff_id, run_id, artifact_id)
    SELECT g.id::text, %(staff)s, g.id, %(artifact)s FROM g
  ),
  u AS (
    INSERT INTO audit_log (staff_id, action, ticket_id, run_id, detail)
    SELECT %(staff)s, 'reply_approved', g.ticket_id, g.id, jsonb_build_object('artifact', %(artifact)s::text) FROM g
  ),
  e AS (
    INSERT INTO events (thread_id, seq, run_id, type, payload)
    SELECT t.id, t.last_seq - 2 + new.place, g.id, new.type, '{}'
      FROM g, t, unnest(ARRAY['reply_approved', 'run_completed']) WITH ORDINALITY AS new (type, place)
  )
SELECT t.id AS thread, t.last_seq FROM g, t
"""
PLAN = RunPlan(planner="model", max_steps=5, timeout_ms=120_000, model="stub")


class ConstantKnowledge:
    """The peers' knowledge base: five passages, always the same."""

    def __init__(self) -> None:
        self._passages = tuple(
            Passage(
                ref=f"kb-{number}",
                chunk_id=new_id(),
                doc_id=new_id(),
                doc_version=1,
                doc_title=f"退款政策 {number}",
                heading="退款",
                text=RULE,
                vector_score=0.9 - number / 20,
                vector_rank=number,
                keyword_score=None,
                keyword_rank=None,
                fused=0.9 - number / 20,
            )
            for number in range(1, 6)
        )

    async def search(self, query: str) -> SearchResult:
        """Return all of it."""
        verdict = Verdict(outcome=Sufficiency.SUFFICIENT, probability=0.9, reason="constant")
        return SearchResult(query=query, passages=self._passages, verdict=verdict)


@dataclass(frozen=True, slots=True)
class Handle:
    """A run that waits for its review."""

    ticket_id: UUID
    run_id: UUID


class Subject:
    """From the arrival of a ticket to its approved reply, through the product's own functions."""

    sync = False
    streams = False

    def __init__(self, env: dict[str, str], width: int) -> None:
        self._env = env
        self._width = width

    async def open(self) -> None:
        """Make the tables and everything that a worker process has."""
        dsn = self._env["pg"] + "%2Cpublic"  # its own schema first, then the one that has the vector type
        self._engine = create_engine(dsn.replace("postgresql://", "postgresql+psycopg://", 1), pool_size=self._width)
        with self._engine.begin() as connection:
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"))
            metadata.create_all(connection)
        self._sessions: sessionmaker[Session] = make_sessions(self._engine)
        self._settings = Settings(
            _env_file=None, demo=True, llm_base_url=self._env["llm"], llm_model="stub", redis_url=self._env["redis"]
        )
        self._sync_redis = Redis.from_url(self._env["redis"])
        self._publisher = Publisher(self._sync_redis)
        self._pool = make_pool(dsn, self._width)
        await self._pool.open(wait=True)
        self._redis = AsyncRedis.from_url(self._env["redis"])
        self._events = BackgroundPublisher(self._redis)
        self._publishing = asyncio.create_task(self._events.run())
        self._client = ChatClient(self._settings)
        skills = make_skills(
            ModelClassifier(self._client), ConstantKnowledge(), ModelDrafter(self._client, cite_sentences)
        )
        self._executor = Executor(
            Ledger(self._pool, self._events, LEASE_S),
            Agent({"model": ModelPlanner(self._client)}, skills),
            HeldRuns(),
            owner="bench",
            skill_timeout_s=60,
            handed_back=list[UUID]().append,
        )
        with self._transaction() as session:
            staff = Staff(id=new_id(), username="bench", display_name="bench", password_hash="-", role=Role.AGENT)  # noqa: S106
            session.add(staff)
            self._staff_id = staff.id

    def _transaction(self) -> Any:
        return transaction(self._sessions, self._send)

    def _send(self, noted: Signals) -> None:
        self._publisher.publish(noted.events)

    async def start(self) -> Handle:
        """Take a ticket in and drive its run to the review."""
        handle = await self.create()
        await self._executor.execute(handle.run_id)
        return handle

    async def create(self) -> Handle:
        """Take a ticket in, as the API does."""
        new = parse_new_ticket(TICKET)
        with self._transaction() as session:
            got = receive_ticket(session, source="bench", key=str(new_id()), new=new, plan=PLAN)
        return Handle(got.ticket_id, got.run_id)

    async def resume(self, handle: Handle) -> None:
        """Approve the draft as the page does."""
        with self._transaction() as session:
            stored = stored_draft(session, handle.run_id)
            ticket = session.get_one(Ticket, handle.ticket_id)
            if stored is None:
                raise RuntimeError("the run has no draft")
            run = session.get_one(Run, handle.run_id)
            seen = seen_now(ticket, run, stored, sources_in_use(session, stored))
            approve(
                session,
                ticket_id=handle.ticket_id,
                staff_id=self._staff_id,
                text=stored.draft.text,
                seen=seen,
                key=str(handle.run_id),
            )

    async def close(self) -> None:
        """Close everything."""
        self._publishing.cancel()
        await self._client.close()
        await self._pool.close()
        await self._redis.aclose()
        self._sync_redis.close()
        self._engine.dispose()


class RunPath(Subject):
    """The run path alone, like the peers: what arrives and what is approved are one statement of plain SQL each.

    They write all the rows of the product (ticket, message, thread, run, event; sent reply, outbox, approval key, audit
    entry, events), but not through its functions, which do more: validation, the check of what was seen, lint.
    """

    async def open(self) -> None:
        """Add the customer that all tickets come from."""
        await super().open()
        self._customer = new_id()
        with self._transaction() as session:
            session.add(Customer(id=self._customer, external_id="c-1", name="c-1"))

    async def create(self) -> Handle:
        """Write a ticket with its run."""
        handle, thread = Handle(new_id(), new_id()), new_id()
        params = {
            "ticket": handle.ticket_id,
            "run": handle.run_id,
            "thread": thread,
            "message": new_id(),
            "customer": self._customer,
            "subject": TICKET["subject"],
            "content": CONTENT,
        }
        async with self._pool.connection() as connection:
            await connection.execute(CREATE, params)
        created = EventFact(thread, handle.ticket_id, 1, EventType.RUN_CREATED, handle.run_id, {"planner": "model"})
        self._events.post([created])
        return handle

    async def resume(self, handle: Handle) -> None:
        """Write the approval."""
        params = {
            "ticket": handle.ticket_id,
            "run": handle.run_id,
            "staff": self._staff_id,
            "artifact": new_id(),
            "delivery": new_id(),
        }
        async with self._pool.connection() as connection:
            row = await (await connection.execute(APPROVE, params)).fetchone()
        if row is None:
            raise RuntimeError("the run does not wait for its review")
        types = (EventType.REPLY_APPROVED, EventType.RUN_COMPLETED)
        self._events.post(
            [
                EventFact(row["thread"], handle.ticket_id, seq, kind, handle.run_id, {})
                for seq, kind in enumerate(types, row["last_seq"] - 1)
            ]
        )
