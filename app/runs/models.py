"""Runs and what they leave: steps, paid calls, checkpoints, artifacts, events."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.base import Base, CreatedAt, Key


class RunStatus(StrEnum):
    """Where a run stands; the allowed moves are in `lifecycle.py`."""

    CREATED = "created"
    RETRYING = "retrying"
    RUNNING = "running"
    WAITING_FOR_REVIEW = "waiting_for_review"
    WAITING_FOR_ESCALATION = "waiting_for_escalation"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


ACTIVE = (
    RunStatus.CREATED,
    RunStatus.RETRYING,
    RunStatus.RUNNING,
    RunStatus.WAITING_FOR_REVIEW,
    RunStatus.WAITING_FOR_ESCALATION,
)
_ACTIVE_SQL = "status IN ({})".format(", ".join(f"'{s}'" for s in ACTIVE))


class RunOrigin(StrEnum):
    """Why a run was made."""

    TICKET = "ticket"
    MESSAGE = "message"
    REGENERATE = "regenerate"
    MANUAL = "manual"
    RETRY = "retry"
    TIMED_OUT = "timed_out"
    WORKER_LOST = "worker_lost"


class ArtifactType(StrEnum):
    """What a run can make."""

    CLASSIFICATION = "classification"
    SEARCH_RESULT = "search_result"
    DRAFT = "draft"
    SENT_REPLY = "sent_reply"


class EventType(StrEnum):
    """What can happen on a thread, in the past tense."""

    RUN_CREATED = "run_created"
    RUN_STARTED = "run_started"
    RUN_RETRYING = "run_retrying"
    RUN_NOT_RETRIED = "run_not_retried"
    STEP_STARTED = "step_started"
    STEP_COMPLETED = "step_completed"
    STEP_FAILED = "step_failed"
    DRAFT_READY = "draft_ready"
    REVIEW_REQUESTED = "review_requested"
    RUN_ESCALATED = "run_escalated"
    RUN_COMPLETED = "run_completed"
    RUN_FAILED = "run_failed"
    RUN_CANCELLED = "run_cancelled"
    RUN_SUPERSEDED = "run_superseded"
    REPLY_APPROVED = "reply_approved"
    REPLY_RECALLED = "reply_recalled"
    REPLY_SENT = "reply_sent"
    REPLY_FAILED = "reply_failed"
    MESSAGE_RECEIVED = "message_received"
    TICKET_CHANGED = "ticket_changed"
    TICKET_MOVED = "ticket_moved"


class Run(Base):
    """One execution on a thread. At most one is active a thread (partial unique index).

    `fence` grows with each claim and every later write carries it; `lease_until` is when the owner is taken for dead.
    No worker may claim it before `not_before`. `deaths` (of workers that had it) and `auto_retries` are carried along
    retries; a failed run is retried by itself at `retry_at`. `started_by` is who asked for it, `moved_by` who made its
    last move; None when no person did. `error_detail` holds the small facts that the places in
    `error_message` are filled from. Costs are in millionths of the currency unit, `timeout_ms` in milliseconds.
    """

    __tablename__ = "runs"
    __table_args__ = (
        Index("uq_runs_active_thread", "thread_id", unique=True, postgresql_where=text(_ACTIVE_SQL)),
        Index("ix_runs_thread_id", "thread_id", "id"),
        Index("ix_runs_lease", "lease_until", postgresql_where=text("status = 'running'")),
        Index("ix_runs_unclaimed", "created_at", postgresql_where=text("status IN ('created', 'retrying')")),
        Index("ix_runs_retry_at", "retry_at", postgresql_where=text("retry_at IS NOT NULL")),
        Index("ix_runs_set_aside", "id", postgresql_where=text("error_code = 'set_aside'")),
        Index("ix_runs_active_status", "status", "id", postgresql_where=text(_ACTIVE_SQL)),
        Index("ix_runs_failed", "id", postgresql_where=text("status = 'failed'")),
    )

    id: Mapped[Key]
    thread_id: Mapped[UUID] = mapped_column(ForeignKey("threads.id"))
    ticket_id: Mapped[UUID] = mapped_column(ForeignKey("tickets.id"))
    status: Mapped[str] = mapped_column(default=RunStatus.CREATED)
    origin: Mapped[str] = mapped_column(default=RunOrigin.TICKET)
    planner: Mapped[str]
    hint: Mapped[str | None]
    max_steps: Mapped[int]
    cur_step: Mapped[int] = mapped_column(default=0)
    timeout_ms: Mapped[int]
    model_planned: Mapped[str | None]
    model_used: Mapped[str | None]
    tokens_in: Mapped[int] = mapped_column(default=0)
    tokens_out: Mapped[int] = mapped_column(default=0)
    cost_micro: Mapped[int] = mapped_column(BigInteger, default=0)
    retry_from: Mapped[UUID | None] = mapped_column(ForeignKey("runs.id"))
    not_before: Mapped[datetime | None]
    deaths: Mapped[int] = mapped_column(default=0)
    auto_retries: Mapped[int] = mapped_column(default=0)
    retry_at: Mapped[datetime | None]
    lease_owner: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    fence: Mapped[int] = mapped_column(default=0)
    last_customer_message_id: Mapped[UUID | None]
    started_by: Mapped[UUID | None] = mapped_column(ForeignKey("staff.id"))
    moved_by: Mapped[UUID | None] = mapped_column(ForeignKey("staff.id"))
    moved_at: Mapped[datetime | None]
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    error_detail: Mapped[dict[str, Any] | None]
    created_at: Mapped[CreatedAt]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]

    @property
    def error_text(self) -> str | None:
        """Why it failed, in plain English: `error_message` with its places filled."""
        return in_english(self.error_message, self.error_detail)


def in_english(message: str | None, detail: Mapping[str, Any] | None) -> str | None:
    """Return a stored reason with its places filled."""
    return message % detail if message and detail else message


class Step(Base):
    """One step of a run; started without an end is what recovery judges.

    Its key (run, number) is what makes it happen once: whoever sends its start again meets the row, and whoever no
    longer holds the run, its fencing number. A step has no other key, for nothing that it does is seen from outside.
    """

    __tablename__ = "steps"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    action_type: Mapped[str]
    skill: Mapped[str]
    input: Mapped[dict[str, Any]]
    output: Mapped[dict[str, Any] | None]
    summary: Mapped[str | None]
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    model: Mapped[str | None]
    tokens_in: Mapped[int] = mapped_column(default=0)
    tokens_out: Mapped[int] = mapped_column(default=0)
    cost_micro: Mapped[int] = mapped_column(BigInteger, default=0)
    started_at: Mapped[CreatedAt]
    ended_at: Mapped[datetime | None]


class LlmCall(Base):
    """What was paid: append-only, written whatever becomes of the step."""

    __tablename__ = "llm_calls"
    __table_args__ = (Index("ix_llm_calls_run_id", "run_id"),)

    id: Mapped[Key]
    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id"))
    step_number: Mapped[int]
    task: Mapped[str]
    provider: Mapped[str]
    model: Mapped[str]
    attempt: Mapped[int]
    tokens_in: Mapped[int]
    tokens_out: Mapped[int]
    cost_micro: Mapped[int] = mapped_column(BigInteger)
    latency_ms: Mapped[int]
    ttft_ms: Mapped[int | None]
    finish_reason: Mapped[str]
    prompt_version: Mapped[str]
    error: Mapped[str | None]
    created_at: Mapped[CreatedAt]


class Checkpoint(Base):
    """What a run knew after a finished step; `schema_version` says how to read it."""

    __tablename__ = "checkpoints"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    step_number: Mapped[int] = mapped_column(primary_key=True)
    schema_version: Mapped[int]
    observation: Mapped[dict[str, Any]]
    created_at: Mapped[CreatedAt]


class Artifact(Base):
    """What a run made: immutable, unique (run, type, version)."""

    __tablename__ = "artifacts"
    __table_args__ = (UniqueConstraint("run_id", "type", "version"),)

    id: Mapped[Key]
    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id"))
    type: Mapped[str]
    version: Mapped[int]
    content: Mapped[dict[str, Any]]
    staff_id: Mapped[UUID | None] = mapped_column(ForeignKey("staff.id"))
    created_at: Mapped[CreatedAt]


class Event(Base):
    """What happened on a thread, in order: (thread, seq). Ids and small facts only; never changed or deleted."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_run_id", "run_id"),)

    thread_id: Mapped[UUID] = mapped_column(ForeignKey("threads.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[UUID | None] = mapped_column(ForeignKey("runs.id"))
    type: Mapped[str]
    payload: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[CreatedAt]
