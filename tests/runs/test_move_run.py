"""The one function by which people and sweeps move runs: it does what the table allows, else nothing at all."""

import pytest

from app.bootstrap import Container
from app.db.base import Base
from app.db.signals import signals
from app.runs.events import NewEvent, lock_thread
from app.runs.lifecycle import FINAL, MOVES, RunMoved, move_run
from app.runs.models import EventType, RunStatus, Step
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.looking import events_of, run_of, steps_of

ALLOWED = [(source, target) for source, targets in MOVES.items() for target in sorted(targets)]


def everything(container: Container) -> dict[str, list[str]]:
    """All rows of all tables."""
    with container.sessions() as session:
        tables = Base.metadata.sorted_tables
        return {table.name: sorted(str(row) for row in session.execute(table.select())) for table in tables}


def begun(container: Container, status: RunStatus) -> MadeTicket:
    """A run in this state with a step under way."""
    made = make_ticket(container, run_status=status)
    with container.transaction() as session:
        session.add(Step(run_id=made.run_id, number=1, action_type="tool_call", skill="draft_reply", input={}))
    return made


@pytest.mark.parametrize("source", sorted(MOVES))
def test_a_move_that_there_is_not_changes_nothing_and_says_how_the_run_stands(
    container: Container, source: RunStatus
) -> None:
    made = begun(container, source)
    before = everything(container)
    for target in set(MOVES) - MOVES[source]:
        with container.transaction() as session:
            thread = lock_thread(session, made.ticket_id)
            with pytest.raises(RunMoved) as refused:
                move_run(session, thread, made.run_id, target, [NewEvent(EventType.RUN_FAILED, made.run_id)])
            assert signals(session).events == signals(session).stopped_runs == []
        assert refused.value.run_status == source
    assert everything(container) == before


@pytest.mark.parametrize(("source", "target"), ALLOWED)
def test_a_move_is_made_with_its_event_and_who_made_it(
    container: Container, source: RunStatus, target: RunStatus
) -> None:
    made, staff_id = begun(container, source), make_staff(container)
    with container.transaction() as session:
        thread = lock_thread(session, made.ticket_id)
        event = NewEvent(EventType.REVIEW_REQUESTED, made.run_id)
        assert move_run(session, thread, made.run_id, target, [event], by=staff_id).status == target
        assert (made.run_id in signals(session).stopped_runs) == (target in FINAL)
    run, (step,) = run_of(container, made.run_id), steps_of(container, made.run_id)
    assert (run.status, run.moved_by, run.moved_at is not None) == (target, staff_id, True)
    assert (run.ended_at is not None) == (step.ended_at is not None) == (target in FINAL)
    assert events_of(container, made.thread_id)[-1].type == EventType.REVIEW_REQUESTED
