"""The executor's own writes: a run's transitions, each ONE statement and so one commit, then the stream.

Runs on an async psycopg pool in autocommit mode, so that no lane blocks another. Pages and people move runs through
`lifecycle.py`; both obey the same table of moves. A statement whose connection is lost, or that waited too long for a
lock, is sent once more: the server may have been restarted meanwhile, and what a run has cost so far is not to be lost
with it.
"""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import orjson
from psycopg import AsyncConnection, OperationalError
from psycopg.errors import UniqueViolation
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from app.agent.ports import RunLost
from app.agent.skill import ModelCall
from app.db.session import LOCK_LIMIT_S
from app.db.signals import EventFact
from app.ids import new_id
from app.live.background import BackgroundPublisher
from app.runs.lifecycle import FINAL, FREES_TICKET, MOVES, TICKET_FREED, sources
from app.runs.models import EventType, RunStatus
from app.runs.statements import CLAIM, END_RUN, END_STEP, LANDED, SAVE_CALLS, START_STEP

log = logging.getLogger(__name__)
Pool = AsyncConnectionPool[AsyncConnection[DictRow]]
Params = dict[str, object]

CONTENT_LIMIT = 20_000
"""Characters of what the customer wrote that a run may see, the newest."""
PAST_LIMIT = 3
"""Earlier tickets of the same customer that a run may see, in summary."""
POOL_LIMIT = 16
"""Most connections of one process for its runs."""
STATEMENT_LIMIT_S = 30
"""So long a statement may take, the wait for its locks included, before it fails; it takes about a millisecond."""
NO_FAILURE: Params = {"fail_code": None, "fail_message": None, "fail_detail": None, "retry": False}
_CLAIMABLE = list(sources(RunStatus.RUNNING))


def make_pool(dsn: str, lanes: int) -> Pool:
    """Return a closed pool for that many lanes; open it on the loop that will use it.

    A run holds a connection for one statement at a time, about a millisecond, and waits for models meanwhile: sixteen
    connections serve far more statements than the process has CPU to send, and sixty-four would be most of what
    PostgreSQL allows everybody together.
    """
    options = f"-c lock_timeout={LOCK_LIMIT_S}s -c statement_timeout={STATEMENT_LIMIT_S}s"
    kwargs = {"autocommit": True, "row_factory": dict_row, "prepare_threshold": 1, "options": options}
    most = min(max(4, lanes), POOL_LIMIT)
    return AsyncConnectionPool(dsn, min_size=2, max_size=most, open=False, kwargs=kwargs, name="ledger")


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that is ours now, and the row that it was claimed with (see CLAIM)."""

    run_id: UUID
    thread_id: UUID
    ticket_id: UUID
    fence: int
    row: DictRow


@dataclass(frozen=True, slots=True)
class Happened:
    """An event that a transition writes; `payload` holds ids and small facts only."""

    type: EventType
    payload: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed: a code, an English msgid for the page, and the small facts that its places are filled from.

    With `retry` the run is due to be retried by itself from now on.
    """

    code: str
    message: str
    detail: Mapping[str, object] | None = None
    retry: bool = False

    @property
    def event(self) -> Happened:
        """The event that says so."""
        return Happened(EventType.RUN_FAILED, {"code": self.code, **({"retry": True} if self.retry else {})})

    @property
    def params(self) -> Params:
        """The parameters that put it on the run's row."""
        return {
            "fail_code": self.code,
            "fail_message": self.message,
            "fail_detail": None if self.detail is None else json_text(orjson.dumps(self.detail)),
            "retry": self.retry,
        }


@dataclass(frozen=True, slots=True)
class Move:
    """Where a run goes, with the events that say so: why a person must take over (`reason`), or why it failed."""

    status: RunStatus
    events: Sequence[Happened] = ()
    reason: str | None = None
    failure: Failure | None = None

    @property
    def params(self) -> Params:
        """The parameters that make the move. Raises ValueError on one that the table does not have."""
        stays = self.status is RunStatus.RUNNING
        if not stays and self.status not in MOVES[RunStatus.RUNNING]:
            raise ValueError(f"a running run can't become {self.status}")
        return {
            "status": self.status,
            "moves": not stays,
            "final": self.status in FINAL,
            "frees": self.status in FREES_TICKET,
            "reason": self.reason,
            **(self.failure.params if self.failure else NO_FAILURE),
        }


@dataclass(slots=True)
class PaidCalls:
    """Calls that are paid and perhaps not on record yet, each under an id of its own: saving twice does no harm."""

    rows: list[tuple[UUID, int, ModelCall]] = field(default_factory=list)

    def add(self, step: int, calls: Sequence[ModelCall]) -> None:
        """Note the calls of one step."""
        self.rows += [(new_id(), step, call) for call in calls]

    def params(self) -> Params:
        """Return the parameters of the statements' CTE `c` and of the sums that go with it."""
        calls = [call for _, _, call in self.rows]
        rows = [{"id": key, "step": step, **_fields(call)} for key, step, call in self.rows]
        return {
            "calls": json_text(orjson.dumps(rows)),
            "tokens_in": sum(call.tokens_in for call in calls),
            "tokens_out": sum(call.tokens_out for call in calls),
            "cost": sum(call.cost_micro for call in calls),
            "model": calls[-1].model if calls else None,
        }


class Ledger:
    """Writes transitions and hands their events to the publisher."""

    def __init__(self, pool: Pool, publisher: BackgroundPublisher, lease_s: float) -> None:
        self._pool = pool
        self._publisher = publisher
        self._lease_s = lease_s

    @property
    def publisher(self) -> BackgroundPublisher:
        """Where the events go."""
        return self._publisher

    async def claim(self, run_id: UUID, owner: str, planners: Collection[str], *, suspect: bool) -> Claimed | None:
        """Take a run that waits for a worker; None when it does not wait (any more).

        One that workers have died with is taken only as a `suspect`. A run that was to use a planner that is not among
        `planners` goes by rules, and says so from then on.
        """
        row = await self._one(
            CLAIM,
            {
                "run": run_id,
                "suspect": suspect,
                "owner": f"{owner}:{new_id()}",
                "from": _CLAIMABLE,
                "planners": list(planners),
                "lease_s": self._lease_s,
                "content_limit": CONTENT_LIMIT,
                "past_limit": PAST_LIMIT,
            },
        )
        if row is None:
            return None
        claimed = Claimed(run_id, row["thread_id"], row["ticket_id"], row["fence"], row)
        self._publisher.follow(claimed.thread_id)
        self._publish(claimed, row["last_seq"], [Happened(EventType.RUN_STARTED, {"planner": row["planner"]})])
        return claimed

    async def start_step(self, claimed: Claimed, params: Params, event: Happened, paid: PaidCalls) -> None:
        """Record a step's start. Raises RunLost."""
        await self._transition(START_STEP, claimed, params, [event], paid)

    async def end_step(
        self, claimed: Claimed, move: Move, params: Params, events: Sequence[Happened], paid: PaidCalls
    ) -> None:
        """Record a step's end with all that it made, and make the move. Raises RunLost."""
        await self._transition(END_STEP, claimed, {**params, **move.params}, [*events, *move.events], paid)

    async def end_run(self, claimed: Claimed, move: Move, paid: PaidCalls) -> None:
        """Make a move between steps and close what is open of the run. Raises RunLost."""
        closed_with = move.failure.code if move.failure else move.status
        params: Params = {**move.params, "step_error": closed_with}
        await self._transition(END_RUN, claimed, params, move.events, paid)

    async def save_calls(self, claimed: Claimed, paid: PaidCalls) -> None:
        """Put on record, and count into the run, what no transition took along, whatever has become of the run."""
        if paid.rows:
            await self._one(SAVE_CALLS, {"run": claimed.run_id, **paid.params()})
            paid.rows.clear()

    async def _transition(
        self, statement: str, claimed: Claimed, params: Params, events: Sequence[Happened], paid: PaidCalls
    ) -> None:
        row = await self._move(
            statement,
            {
                "run": claimed.run_id,
                "status": RunStatus.RUNNING,
                "thread": claimed.thread_id,
                "fence": claimed.fence,
                "published": self._publisher.published(claimed.thread_id),
                "types": [event.type for event in events],
                "payloads": [json_text(orjson.dumps(event.payload)) for event in events],
                **paid.params(),
                **params,
            },
        )
        if row is None:
            raise RunLost
        paid.rows.clear()
        if row.get("freed"):
            events = [*events[:-1], Happened(events[-1].type, {**events[-1].payload, **TICKET_FREED})]
        if row["last_seq"] is not None:  # else nobody knows their numbers, and the sweep publishes them
            self._publish(claimed, row["last_seq"], events)

    def _publish(self, claimed: Claimed, last_seq: int, events: Sequence[Happened]) -> None:
        first = last_seq - len(events) + 1
        self._publisher.post(
            [
                EventFact(claimed.thread_id, claimed.ticket_id, seq, event.type, claimed.run_id, dict(event.payload))
                for seq, event in enumerate(events, first)
            ]
        )

    async def _move(self, statement: str, params: Params) -> DictRow | None:
        """Return the row of a transition, None when its guard refused it; without `last_seq` when that was lost."""
        try:
            return await self._ask(statement, params)
        except OperationalError as error:
            await self._reconnect(error)
        try:
            return await self._ask(statement, params) or await self._ask(LANDED, params)
        except UniqueViolation:  # the row of this step is there: it was committed, and only the answer was lost
            return {"last_seq": None}

    async def _one(self, statement: str, params: Params) -> DictRow | None:
        try:
            return await self._ask(statement, params)
        except OperationalError as error:
            await self._reconnect(error)
        return await self._ask(statement, params)

    async def _ask(self, statement: str, params: Params) -> DictRow | None:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(statement, params)
            return await cursor.fetchone()

    async def _reconnect(self, error: OperationalError) -> None:
        """Let go of the connections that are dead, so that the next one asked for is not; the pool waits for it."""
        log.warning("PostgreSQL did not answer (%s); asking once more", type(error).__name__)
        await self._pool.check()


def json_text(json: str | bytes) -> str:
    """Return JSON text without NUL characters, which PostgreSQL can't store: a model may write anything."""
    text = json if isinstance(json, str) else json.decode()
    if "\\u0000" not in text:
        return text
    # An escaped backslash before it makes it harmless text, so pairs of backslashes are stepped over.
    return re.sub(r"(\\\\)|\\u0000", lambda match: match[1] or "", text)


def _fields(call: ModelCall) -> dict[str, object]:
    return {name: getattr(call, name) for name in ModelCall.__slots__}
