"""Places in a process where a fault strikes. Each is passed on two sides, and counted.

CLAIM, START_STEP, END_STEP, END_RUN, SAVE_CALLS  one of the worker's own statements, which are commits of their own
statement                                         any of those
skill:NAME                                        the port that a skill calls
channel                                           the hand-over of an approved reply to its channel, which may refuse
                                                  it (on the side before) or break
commit                                            a transaction of the web; what it has to tell is told after "after"
sql                                               any statement of such a transaction
"""

import asyncio
import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session

from app.delivery.channels.channel import NotSent
from app.delivery.channels.in_product import InProduct
from app.delivery.payload import Payload
from app.runs import statements
from tests.faults.script import Point

NAMES = ("CLAIM", "START_STEP", "END_STEP", "END_RUN", "SAVE_CALLS")


class Points:
    """The points of one process."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._passed: Counter[tuple[str, str]] = Counter()

    def passing(self, side: str, *places: str) -> str:
        """Pass the places on that side: die, freeze, or return the fault that the caller has to act out."""
        met = ""
        for place in places:
            self._passed[place, side] += 1
            here = (place, side, self._passed[place, side])
            for point in self._points:
                if (point.place, point.side, point.nth) == here:
                    met = self._strike(point) or met
        return met

    async def passing_skill(self, side: str, name: str) -> None:
        """Pass a skill's port: it may also hang or break."""
        fault = self.passing(side, f"skill:{name}", "skill")
        if fault == "hang":
            await asyncio.sleep(3600)
        if fault == "crash":
            raise ZeroDivisionError("as the schedule says")

    @staticmethod
    def _strike(point: Point) -> str:
        if point.fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if point.fault == "freeze":
            # To this very thread: another one might take the signal, and this one go on for a moment.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return point.fault


def watch_ledger(points: Points) -> None:
    """Have the run's own statements pass their points, on both sides of the commit that each of them is."""
    names = {getattr(statements, name): name for name in NAMES}
    execute = psycopg.AsyncConnection.execute

    async def executed(connection: Any, query: Any, params: Any = None, **options: Any) -> Any:
        name = names.get(query)
        if name is None:
            return await execute(connection, query, params, **options)
        points.passing("before", name, "statement")
        cursor = await execute(connection, query, params, **options)
        fault = points.passing("after", name, "statement")
        if fault == "lose_answer":
            raise psycopg.OperationalError("the answer was lost, as the schedule says")
        if fault == "hang":
            await asyncio.sleep(3600)
        return cursor

    psycopg.AsyncConnection.execute = executed


def watch_channel(points: Points, notes: int, *, repeats: bool) -> None:
    """Have each reply pass its point where the channel takes it, which may also refuse it or break, and note that."""
    send = InProduct.send

    def note(delivery_id: UUID, how: str) -> None:
        os.write(notes, f"{delivery_id} {how}\n".encode())

    def break_at(side: str, delivery_id: UUID) -> None:
        fault = points.passing(side, "channel")
        if fault == "refuse":
            note(delivery_id, "refused")
            raise NotSent("refused, as the schedule says")
        if fault == "break":
            note(delivery_id, "broke")
            raise ZeroDivisionError("as the schedule says")

    def sent(channel: InProduct, delivery_id: UUID, payload: Payload) -> None:
        break_at("before", delivery_id)
        send(channel, delivery_id, payload)
        note(delivery_id, "sent")
        break_at("after", delivery_id)

    InProduct.send = sent
    InProduct.repeatable = repeats


def watch_transactions(points: Points) -> None:
    """Have the transactions of SQLAlchemy pass their points."""
    event.listen(Session, "before_commit", lambda _: points.passing("before", "commit"))
    event.listen(Session, "after_commit", lambda _: points.passing("after", "commit"))
    event.listen(Engine, "before_cursor_execute", lambda *_: points.passing("before", "sql"))
    event.listen(Engine, "after_cursor_execute", lambda *_: points.passing("after", "sql"))
