"""Statements that an arena compiles once for all processes that are forked from it: most of what a short life costs."""

from sqlalchemy import Engine

import app.bootstrap
from app.bootstrap import Container
from jobs.schedule import PERIODIC
from tests.faults.desk import Desk
from tests.faults.script import Action, What

COMMANDS = (
    Action(what=What.TICKET),
    Action(what=What.MESSAGE, key="warm", text="还没有收到。"),
    Action(what=What.CLASS, text="urgent refund"),
    Action(what=What.REGENERATE),
    Action(what=What.MANUAL),
    Action(what=What.APPROVE, key="warm"),
    Action(what=What.REGENERATE),
    Action(what=What.CANCEL),
    Action(what=What.STATUS, text="closed"),
)


def warm_up(parts: Container) -> None:
    """Do on an arena's database what its processes will do; what that leaves there is thrown away by others."""
    desk = Desk(parts, run_timeout_ms=1000)
    for number, action in enumerate(COMMANDS):
        desk.do({"id": number, "action": action.model_dump(mode="json")})
    for row in PERIODIC:
        row.work(parts)


def share(engine: Engine) -> None:
    """Let a process that has just been forked make its containers with connections of its own on this engine."""
    engine.dispose(close=False)
    app.bootstrap.make_engine = lambda *_, **__: engine
