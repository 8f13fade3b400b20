"""What a run costs the database, counted from PostgreSQL's own log."""

from pathlib import Path

from sqlalchemy import Engine

from app.bootstrap import Container, build_container
from app.intake.fields import parse_new_ticket
from app.intake.service import receive_ticket
from app.review.contract import seen_now, sources_in_use, stored_draft
from app.review.service import approve
from app.runs.lifecycle import latest_run
from app.runs.models import Run
from app.settings import Settings
from app.tickets.models import Ticket
from tests.agent.parts import DRAFT_TEXT
from tests.factories import make_staff, make_ticket
from tests.runs.conftest import StartRuntime
from tests.runs.looking import run_of
from tests.runs.statement_log import logged_statements, writing_commits

TICKET = {"customer_id": "C-7", "subject": "退款多久到账", "content": "上周申请的退款还没有到。"}


def test_a_run_from_ticket_to_approval_commits_nine_times(
    container: Container, settings: Settings, start_runtime: StartRuntime, admin_engine: Engine, var_dir: Path
) -> None:
    staff_id = make_staff(container)
    with logged_statements(admin_engine, var_dir) as statements:
        fresh = build_container(settings)
        new = parse_new_ticket(TICKET)
        with fresh.transaction() as session:
            got = receive_ticket(session, source="test", key="key-00000001", new=new, plan=fresh.run_plan())
        start_runtime().execute(got.run_id)
        with fresh.transaction() as session:
            ticket, run = session.get_one(Ticket, got.ticket_id), session.get_one(Run, got.run_id)
            stored = stored_draft(session, run.id)
            seen = seen_now(ticket, run, stored, sources_in_use(session, stored))
        with fresh.transaction() as session:
            approve(session, ticket_id=got.ticket_id, staff_id=staff_id, text=DRAFT_TEXT, seen=seen, key="k" * 16)
        fresh.engine.dispose()
    assert run_of(container, got.run_id).status == "completed"
    assert writing_commits(statements) == 9


def test_each_transition_of_a_run_is_one_statement(
    container: Container, start_runtime: StartRuntime, admin_engine: Engine, var_dir: Path
) -> None:
    made = make_ticket(container)
    with logged_statements(admin_engine, var_dir) as statements:
        start_runtime().execute(made.run_id)
    # One claim, and for each of three steps a start and an end.
    assert len(statements) == 7
    assert writing_commits(statements) == 7
    with container.transaction() as session:
        run = latest_run(session, made.thread_id)
        assert run is not None
        assert run.status == "waiting_for_review"
