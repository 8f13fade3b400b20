"""As many runs at once as a worker may have lanes: none of them waits for another's connection."""

from sqlalchemy import func, select

from app.bootstrap import Container
from app.llm.classifier import ModelClassifier
from app.llm.client import ChatClient
from app.runs.ledger import POOL_LIMIT
from app.runs.models import Run, Step
from app.settings import Settings
from tests.factories import make_ticket
from tests.runs.conftest import InBackground, StartRuntime, make_agent
from tests.support.model_server import ModelServer
from tests.support.waiting import until

LANES = 64


def test_sixty_four_runs_wait_for_their_models_at_the_same_time(
    container: Container, settings: Settings, start_runtime: StartRuntime, stub_llm: ModelServer
) -> None:
    """Over fewer connections to PostgreSQL than runs, and as many to the model as there are runs."""
    assert LANES > POOL_LIMIT
    settings = settings.model_copy(
        update={"worker_lanes": LANES, "llm_base_url": stub_llm.base_url, "llm_model": "stub;delay=30"}
    )
    client = ChatClient(settings)
    made = [make_ticket(container, customer=f"C-{number}") for number in range(LANES)]
    runtime = start_runtime(make_agent(classifier=ModelClassifier(client)), client.close, settings=settings)
    runs = [InBackground(runtime, ticket.run_id) for ticket in made]
    until(lambda: stub_llm.stats()["requests"] == LANES, limit_s=25)
    with container.transaction() as session:
        assert session.scalar(select(func.count()).where(Run.status == "running")) == LANES
        assert session.scalar(select(func.count()).where(Step.ended_at.is_(None))) == LANES
    assert set(runtime.stop()) == {ticket.run_id for ticket in made}
    for run in runs:
        run.wait()
