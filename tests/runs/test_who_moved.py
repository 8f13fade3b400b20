"""Who a refusal names: only who made the last move, never who had started the run that a worker moved since."""

from functools import partial

import pytest

from app.bootstrap import Container
from app.review import service
from app.runs.ledger import Failure, Happened, Move
from app.runs.lifecycle import RunMoved
from app.runs.models import EventType, RunStatus
from tests.factories import make_staff, make_ticket
from tests.runs.looking import run_of
from tests.runs.test_every_path import working

FAILURE = Failure("model_unavailable", "No model answers at the moment.")
BY_WORKERS = [
    Move(RunStatus.FAILED, [FAILURE.event], failure=FAILURE),
    Move(RunStatus.WAITING_FOR_ESCALATION, [Happened(EventType.RUN_ESCALATED, {"reason": "x"})], reason="x"),
]


@pytest.mark.parametrize("move", BY_WORKERS, ids=lambda move: move.status)
def test_what_a_worker_did_is_not_said_of_who_started_the_run(container: Container, move: Move) -> None:
    ann, bob = make_staff(container, "ann"), make_staff(container, "bob")
    made = make_ticket(container)
    with container.transaction() as session:
        plan = container.run_plan(by=ann)
        run_id = service.regenerate(session, ticket_id=made.ticket_id, staff_id=ann, hint="", plan=plan)
    with working(container.settings) as workers:
        claimed = workers.claim(run_id)
        assert claimed is not None
        workers.end(claimed, move)
    who = {"ticket_id": made.ticket_id, "run_id": run_id, "staff_id": bob}
    commands = {
        RunStatus.FAILED: partial(service.cancel_run, **who),
        RunStatus.WAITING_FOR_ESCALATION: partial(service.escalate, **who, reason="y"),
    }
    with pytest.raises(RunMoved) as refused, container.transaction() as session:
        commands[move.status](session)
    assert (refused.value.run_status, refused.value.by) == (move.status, None)
    assert run_of(container, run_id).started_by == ann
