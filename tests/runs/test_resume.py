"""A run that follows another: what is carried over, and what is done again."""

from collections.abc import Callable
from uuid import UUID

import pytest
from sqlalchemy import update

from app.agent.values import Sufficiency
from app.bootstrap import Container
from app.review.service import regenerate
from app.runs.models import Checkpoint
from app.tickets.models import TicketMessage
from tests.agent.parts import FixedDrafter, FixedRetriever
from tests.factories import MadeTicket, make_staff, make_ticket
from tests.runs.conftest import StartRuntime, make_agent
from tests.runs.looking import run_of, steps_of


def again(container: Container, made: MadeTicket, hint: str = "短一点") -> UUID:
    """Regenerate as the page does."""
    staff_id = make_staff(container)
    with container.transaction() as session:
        return regenerate(session, ticket_id=made.ticket_id, staff_id=staff_id, hint=hint, plan=container.run_plan())


def skills_of(container: Container, run_id: UUID) -> list[str]:
    return [step.skill for step in steps_of(container, run_id)]


def test_regenerate_writes_the_draft_again_and_nothing_else(container: Container, start_runtime: StartRuntime) -> None:
    made, drafter = make_ticket(container), FixedDrafter()
    runtime = start_runtime(make_agent(drafter=drafter))
    runtime.execute(made.run_id)
    second = again(container, made)
    runtime.execute(second)
    third = again(container, made, "再短一点")
    runtime.execute(third)
    assert skills_of(container, second) == skills_of(container, third) == ["draft_reply"]
    assert drafter.hints == [None, "短一点", "再短一点"]
    assert run_of(container, made.run_id).status == run_of(container, second).status == "superseded"
    assert run_of(container, third).status == "waiting_for_review"


def test_a_search_that_did_not_suffice_is_made_again(container: Container, start_runtime: StartRuntime) -> None:
    made = make_ticket(container)
    start_runtime(make_agent(retriever=FixedRetriever([Sufficiency.INSUFFICIENT]))).execute(made.run_id)
    second = again(container, made)
    start_runtime().execute(second)
    assert skills_of(container, second) == ["search_knowledge", "draft_reply"]


def change_message(container: Container) -> None:
    with container.transaction() as session:
        session.execute(update(TicketMessage).values(body="其实我想问发票。"))


def age_checkpoints(container: Container) -> None:
    with container.transaction() as session:
        session.execute(update(Checkpoint).values(schema_version=0))


def spoil_checkpoints(container: Container) -> None:
    with container.transaction() as session:
        session.execute(update(Checkpoint).values(observation={"ticket": "?"}))


@pytest.mark.parametrize("change", [change_message, age_checkpoints, spoil_checkpoints])
def test_what_no_longer_fits_is_not_carried_over(
    container: Container, start_runtime: StartRuntime, change: Callable[[Container], None]
) -> None:
    made, runtime = make_ticket(container), start_runtime()
    runtime.execute(made.run_id)
    change(container)
    second = again(container, made)
    runtime.execute(second)
    assert skills_of(container, second) == ["classify_ticket", "search_knowledge", "draft_reply"]
