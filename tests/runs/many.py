"""Makes runs by the thousand, in one statement: too many to make through the product."""

from sqlalchemy import text

from app.bootstrap import Container

_MAKE = text(
    """
WITH c AS (
    INSERT INTO customers (id, external_id, name) VALUES (gen_random_uuid(), 'C-many', '陈雨桐') RETURNING id
  ),
  k AS (
    INSERT INTO tickets (id, customer_id, channel, subject, status, version)
    SELECT gen_random_uuid(), c.id, 'web', '发货了吗', 'processing', 1 FROM c, generate_series(1, :count)
    RETURNING id
  ),
  t AS (
    INSERT INTO threads (id, ticket_id, last_seq, published_seq) SELECT gen_random_uuid(), k.id, 0, 0 FROM k
    RETURNING id, ticket_id
  )
INSERT INTO runs (id, thread_id, ticket_id, status, origin, planner, max_steps, cur_step, timeout_ms, tokens_in,
                  tokens_out, cost_micro, deaths, auto_retries, fence, lease_until, created_at)
SELECT gen_random_uuid(), t.id, t.ticket_id, :status, 'ticket', 'rule', 5, 0, 120000, 0, 0, 0, 0, 0, 1,
       CASE WHEN :status = 'running' THEN now() - interval '1 minute' END, now() - interval '1 minute'
  FROM t
"""
)


def make_runs(container: Container, count: int, *, status: str = "running") -> None:
    """Make so many runs, each with a ticket of its own; running ones have lost their worker a minute ago."""
    with container.transaction() as session:
        session.execute(_MAKE, {"count": count, "status": status})
