"""Migrations run forward on a filled database and lose no row."""

from collections.abc import Iterator

import pytest
from alembic import command
from sqlalchemy import Engine, create_engine, make_url, text

from app.embedded import ServiceUrls
from dev.database import alembic_config

FILL = """
INSERT INTO staff (id, username, display_name, password_hash, role, is_active)
VALUES ('00000000-0000-7000-8000-000000000001', 'ann', 'Ann', 'x', 'agent', true);
INSERT INTO customers (id, external_id, name) VALUES ('00000000-0000-7000-8000-000000000002', 'C-1', '陈雨桐');
INSERT INTO tickets (id, customer_id, channel, subject, status, version)
VALUES ('00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000002', 'web', '退款', 'resolved', 4);
INSERT INTO ticket_messages (id, ticket_id, number, kind, body)
VALUES ('00000000-0000-7000-8000-000000000004', '00000000-0000-7000-8000-000000000003', 1, 'customer', '何时到账');
INSERT INTO threads (id, ticket_id, last_seq, published_seq)
VALUES ('00000000-0000-7000-8000-000000000005', '00000000-0000-7000-8000-000000000003', 3, 3);
INSERT INTO runs (id, thread_id, ticket_id, status, planner, max_steps, cur_step, timeout_ms, tokens_in, tokens_out,
                  cost_micro, fence, retry_from, moved_by, moved_at)
SELECT id, '00000000-0000-7000-8000-000000000005', '00000000-0000-7000-8000-000000000003', status, planner, 5, 0,
       120000, 0, 0, 0, 1, retry_from, '00000000-0000-7000-8000-000000000001', moved_at
  FROM (VALUES ('00000000-0000-7000-8000-000000000006'::uuid, 'failed', 'rule', NULL::uuid, now()),
               ('00000000-0000-7000-8000-000000000007', 'superseded', 'rule', '00000000-0000-7000-8000-000000000006',
                now()),
               ('00000000-0000-7000-8000-000000000008', 'waiting_for_review', 'manual',
                '00000000-0000-7000-8000-000000000007', NULL)
       ) AS made (id, status, planner, retry_from, moved_at);
INSERT INTO intake_keys (source, key, digest, ticket_id)
VALUES ('shop', 'k1', 'x', '00000000-0000-7000-8000-000000000003');
"""


@pytest.fixture
def engine(services: ServiceUrls) -> Iterator[Engine]:
    """An empty database of its own."""
    url = make_url(services.database_url)
    server = create_engine(url, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE migrating"))
    made = create_engine(url.set(database="migrating"))
    yield made
    made.dispose()
    with server.connect() as connection:
        connection.execute(text("DROP DATABASE migrating WITH (FORCE)"))
    server.dispose()


def count_rows(engine: Engine) -> dict[str, int]:
    """Return how many rows each table has."""
    with engine.connect() as connection:
        names = connection.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).all()
        return {name: connection.scalars(text(f'SELECT count(*) FROM "{name}"')).one() for name in names}  # noqa: S608


def test_a_filled_database_of_the_first_version_comes_up_to_date_without_losing_a_row(engine: Engine) -> None:
    config = alembic_config(engine.url.render_as_string(hide_password=False))
    command.upgrade(config, "0001")
    with engine.begin() as connection:
        connection.execute(text(FILL))
    before = count_rows(engine)
    command.upgrade(config, "head")
    assert {name: count for name, count in count_rows(engine).items() if name in before} == before
    with engine.connect() as connection:
        runs = connection.execute(text("SELECT origin, deaths, auto_retries FROM runs ORDER BY id")).all()
        people = connection.execute(text("SELECT started_by IS NULL, moved_by IS NULL FROM runs ORDER BY id")).all()
    assert [tuple(row) for row in runs] == [("ticket", 0, 0), ("regenerate", 0, 0), ("manual", 0, 0)]
    assert [tuple(row) for row in people] == [(True, False), (True, False), (False, True)]
