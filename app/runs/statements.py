"""The SQL of a run's transitions: ONE statement each, guard first.

`l` takes the thread's lock, `g` is the guard on the run (so the lock order is thread, run), and everything else is
written FROM `g`, the event numbers (`t`) too: when the guard matches nothing, nothing is written, not even a number.
Paid calls that a refused transition did not take along are kept by SAVE_CALLS, whatever has become of the run. Each
call is counted into the run's sums by the statement that puts it on record (`n` are those that are new: a task that is
cancelled while it waits for the answer does not know whether they are on record already). Plain text, because the ORM
costs several times the CPU here.

Each may be sent twice, for its answer may be lost with the connection. The second one finds the run moved (LANDED tells
whether the first one did that) or the step's row there already, and writes nothing. CLAIM is repeated instead: each
claim names an owner of its own.

A ticket that is escalated already keeps since when and why: a person may have said it, and what a later run found
stands in its own event.

A run that fails leaves its ticket to whoever takes it on: the ticket is pending again (`p`), and the run's last event
says so.

What a run is to answer are the customer's messages after the last one that a sent reply knew of; a message that crossed
with the reply, and so has the lower number, is among them. Where there is none, it is all of them.
"""

_CALLS = """
  c AS (
    INSERT INTO llm_calls (id, run_id, step_number, task, provider, model, attempt, tokens_in, tokens_out, cost_micro,
                           latency_ms, ttft_ms, finish_reason, prompt_version, error)
    SELECT call.id, g.id, step, task, provider, model, attempt, tokens_in, tokens_out, cost_micro,
           latency_ms, ttft_ms, finish_reason, prompt_version, error
      FROM g, jsonb_to_recordset(%(calls)s::jsonb) AS call (
           id uuid, step int, task text, provider text, model text, attempt int, tokens_in int, tokens_out int,
           cost_micro bigint, latency_ms int, ttft_ms int, finish_reason text, prompt_version text, error text)
    ON CONFLICT (id) DO NOTHING
    RETURNING tokens_in, tokens_out, cost_micro
  )"""
_LOCK = """
  l AS (SELECT id FROM threads WHERE id = %(thread)s FOR NO KEY UPDATE)"""
_NUMBERS = """
  t AS (
    UPDATE threads SET last_seq = last_seq + cardinality(%(types)s::text[]),
                       published_seq = greatest(published_seq, %(published)s)
      FROM g WHERE threads.id = %(thread)s
    RETURNING threads.id, last_seq
  )"""
_EVENTS = """
  e AS (
    INSERT INTO events (thread_id, seq, run_id, type, payload)
    SELECT t.id, t.last_seq - cardinality(%(types)s::text[]) + new.place, g.id, new.type, new.payload::jsonb
      FROM g, t, unnest(%(types)s::text[], %(payloads)s::text[]) WITH ORDINALITY AS new (type, payload, place)
  )"""
_END_EVENTS = _EVENTS.replace(
    "new.payload::jsonb",
    """CASE WHEN new.place = cardinality(%(types)s::text[]) AND EXISTS (SELECT FROM p WHERE p.freed)
                THEN new.payload::jsonb || '{"ticket": "pending"}' ELSE new.payload::jsonb END""",
)
_NEW = """
  n AS (
    SELECT coalesce(sum(call.tokens_in), 0) AS tokens_in, coalesce(sum(call.tokens_out), 0) AS tokens_out,
           coalesce(sum(call.cost_micro), 0) AS cost_micro
      FROM jsonb_to_recordset(%(calls)s::jsonb) AS call (id uuid, tokens_in int, tokens_out int, cost_micro bigint)
     WHERE NOT EXISTS (SELECT FROM llm_calls WHERE llm_calls.id = call.id)
  )"""
_PAID = """tokens_in = runs.tokens_in + n.tokens_in, tokens_out = runs.tokens_out + n.tokens_out,
           cost_micro = runs.cost_micro + n.cost_micro, model_used = coalesce(%(model)s::text, runs.model_used)"""
_FAILED = """error_code = %(fail_code)s::text, error_message = %(fail_message)s::text,
           error_detail = %(fail_detail)s::jsonb, ended_at = CASE WHEN %(final)s THEN now() END"""
_ESCALATED = """escalated_at = coalesce(escalated_at, CASE WHEN %(reason)s::text IS NOT NULL THEN now() END),
           escalation_reason = CASE WHEN escalated_at IS NULL THEN %(reason)s::text ELSE escalation_reason END"""
_IS_FREED = "%(frees)s AND tickets.status = 'processing'"
_FREED = f"""status = CASE WHEN {_IS_FREED} THEN 'pending' ELSE tickets.status END,
           moved_by = CASE WHEN {_IS_FREED} THEN NULL ELSE tickets.moved_by END,
           moved_at = CASE WHEN {_IS_FREED} THEN now() ELSE tickets.moved_at END"""
_WAS_FREED = "%(frees)s AND tickets.status = 'pending' AS freed"

CLAIM = """
WITH r AS (
    SELECT thread_id, last_customer_message_id FROM runs
     WHERE id = %(run)s AND (deaths = 0 OR %(suspect)s)
       AND (status = ANY(%(from)s::text[]) AND coalesce(not_before, now()) <= now()
            OR status = 'running' AND lease_owner = %(owner)s)
  ),
  l AS (SELECT threads.id FROM threads, r WHERE threads.id = r.thread_id FOR NO KEY UPDATE OF threads),
  g AS (
    UPDATE runs SET status = 'running', fence = fence + 1, lease_owner = %(owner)s,
                    lease_until = clock_timestamp() + make_interval(secs => %(lease_s)s),
                    started_at = coalesce(started_at, now()), moved_by = NULL, moved_at = now(),
                    last_customer_message_id = k.last_customer_message_id,
                    planner = CASE WHEN runs.planner = ANY(%(planners)s::text[]) THEN runs.planner ELSE 'rule' END,
                    model_planned = CASE WHEN runs.planner = ANY(%(planners)s::text[]) THEN runs.model_planned END
      FROM l, r, tickets k
     WHERE runs.id = %(run)s AND runs.thread_id = l.id AND k.id = runs.ticket_id
       AND runs.last_customer_message_id IS NOT DISTINCT FROM r.last_customer_message_id
       AND (runs.status = ANY(%(from)s::text[]) AND coalesce(runs.not_before, now()) <= now()
            OR runs.status = 'running' AND runs.lease_owner = %(owner)s)
    RETURNING runs.*
  ),
  t AS (
    UPDATE threads SET last_seq = last_seq + 1 FROM g WHERE threads.id = g.thread_id
    RETURNING threads.id, threads.last_seq
  ),
  p AS (
    UPDATE tickets SET status = 'processing', moved_by = NULL, moved_at = now(), version = version + 1
      FROM g WHERE tickets.id = g.ticket_id AND tickets.status = 'pending'
  ),
  e AS (
    INSERT INTO events (thread_id, seq, run_id, type, payload)
    SELECT t.id, t.last_seq, g.id, 'run_started', jsonb_build_object('planner', g.planner) FROM g, t
  )
SELECT g.id AS run_id, g.thread_id, g.ticket_id, g.fence, g.planner, g.hint, g.max_steps, g.timeout_ms, g.cur_step,
       g.auto_retries, t.last_seq, k.number, k.channel, k.subject, c.name AS customer_name,
       (WITH said AS (
           SELECT number, body, sum(length(body)) OVER (ORDER BY number DESC) - length(body) AS later
             FROM ticket_messages WHERE ticket_id = k.id AND kind = 'customer'
         ),
         last AS (
           SELECT max(coalesce(seen.number, reply.number)) AS answered
             FROM ticket_messages reply
             LEFT JOIN artifacts ON artifacts.id = reply.artifact_id
             LEFT JOIN runs answering ON answering.id = artifacts.run_id
             LEFT JOIN ticket_messages seen ON seen.id = answering.last_customer_message_id
            WHERE reply.ticket_id = k.id AND reply.kind = 'reply'
         )
        SELECT right(coalesce(string_agg(body, E'\\n\\n' ORDER BY number) FILTER (WHERE number > answered),
                              string_agg(body, E'\\n\\n' ORDER BY number)), %(content_limit)s)
          FROM said, last
         WHERE later < %(content_limit)s) AS content,
       (SELECT coalesce(jsonb_agg(to_jsonb(past)), '[]')
          FROM (SELECT number, subject, status, category FROM tickets
                 WHERE customer_id = k.customer_id AND id <> k.id ORDER BY number DESC LIMIT %(past_limit)s) past
       )::text AS past,
       (SELECT count(*) FROM checkpoints WHERE run_id = g.id) AS steps_taken,
       b.run_id = g.id AS checkpoint_is_own, b.step_number AS checkpoint_step, b.schema_version,
       b.observation::text AS observation,
       b.last_customer_message_id IS NOT DISTINCT FROM g.last_customer_message_id AS same_message,
       f.status AS earlier_status, f.error_message AS earlier_error, f.error_detail AS earlier_detail
  FROM g
  JOIN t ON true
  JOIN tickets k ON k.id = g.ticket_id
  JOIN customers c ON c.id = k.customer_id
  LEFT JOIN runs f ON f.id = g.retry_from
  LEFT JOIN LATERAL (
       WITH RECURSIVE line (id, retry_from, last_customer_message_id) AS (
           SELECT g.id, g.retry_from, g.last_customer_message_id
           UNION ALL
           SELECT runs.id, runs.retry_from, runs.last_customer_message_id
             FROM line JOIN runs ON runs.id = line.retry_from
            WHERE NOT EXISTS (SELECT FROM checkpoints WHERE checkpoints.run_id = line.id)
         )
       SELECT run_id, step_number, schema_version, observation, last_customer_message_id
         FROM line JOIN checkpoints ON checkpoints.run_id = line.id
        ORDER BY step_number DESC LIMIT 1) b ON true
"""
"""Its `r` is read before the lock is waited for: the claim is refused when a message has joined the run meanwhile, for
`content` would lack it. `content` is what the customer wrote since our last reply; all of it where that is nothing. It
is put together from the newest messages only, as many as there is room for (`later` are the characters after one).
`b` is the last checkpoint of the run itself, else of the nearest run in its line of retries that has one; `f` is the
run that it follows. The lease begins when the lock was got, not when it was asked for.
"""

START_STEP = f"""
WITH {_LOCK},{_NEW},
  g AS (
    UPDATE runs SET cur_step = %(step)s, {_PAID}
      FROM l, n WHERE runs.id = %(run)s AND runs.status = 'running' AND runs.fence = %(fence)s
    RETURNING runs.id
  ),
  s AS (
    INSERT INTO steps (run_id, number, action_type, skill, input, model, tokens_in, tokens_out, cost_micro)
    SELECT g.id, %(step)s, 'tool_call', %(skill)s, %(input)s::jsonb, %(model)s, %(tokens_in)s, %(tokens_out)s, %(cost)s
      FROM g
  ),{_NUMBERS},{_EVENTS},{_CALLS}
SELECT t.last_seq FROM g, t
"""  # noqa: S608 - built from constants; values are bound

END_STEP = f"""
WITH {_LOCK},{_NEW},
  g AS (
    UPDATE runs SET status = %(status)s, {_PAID}, moved_by = NULL,
                    moved_at = CASE WHEN %(moves)s THEN now() ELSE runs.moved_at END,
                    lease_until = CASE WHEN %(moves)s THEN NULL ELSE runs.lease_until END, {_FAILED}
      FROM l, n WHERE runs.id = %(run)s AND runs.status = 'running' AND runs.fence = %(fence)s
    RETURNING runs.id, runs.ticket_id
  ),
  s AS (
    UPDATE steps SET output = %(output)s::jsonb, summary = %(summary)s, error_code = %(error_code)s,
                     error_message = %(error_message)s, ended_at = now(), model = coalesce(%(model)s, steps.model),
                     tokens_in = steps.tokens_in + %(tokens_in)s, tokens_out = steps.tokens_out + %(tokens_out)s,
                     cost_micro = steps.cost_micro + %(cost)s
      FROM g WHERE steps.run_id = g.id AND steps.number = %(step)s
  ),
  k AS (
    INSERT INTO checkpoints (run_id, step_number, schema_version, observation)
    SELECT g.id, %(step)s, %(schema_version)s, %(observation)s::jsonb FROM g
  ),
  a AS (
    INSERT INTO artifacts (id, run_id, type, version, content)
    SELECT %(artifact)s::uuid, g.id, %(artifact_type)s::text,
           (SELECT coalesce(max(version), 0) + 1 FROM artifacts WHERE run_id = g.id AND type = %(artifact_type)s::text),
           %(output)s::jsonb
      FROM g WHERE %(artifact)s::uuid IS NOT NULL
  ),
  p AS (
    UPDATE tickets
       SET priority = CASE WHEN priority_set_by = 'person' THEN priority ELSE coalesce(%(priority)s, priority) END,
           priority_set_by = CASE WHEN %(priority)s IS NULL OR priority_set_by = 'person' THEN priority_set_by
                                  ELSE 'ai' END,
           category = CASE WHEN category_set_by = 'person' THEN category ELSE coalesce(%(category)s, category) END,
           category_set_by = CASE WHEN %(category)s IS NULL OR category_set_by = 'person' THEN category_set_by
                                  ELSE 'ai' END,
           confidence = coalesce(%(confidence)s::float8, confidence),
           {_ESCALATED}, {_FREED},
           version = version + 1
      FROM g WHERE tickets.id = g.ticket_id
                   AND (%(priority)s::text IS NOT NULL OR %(reason)s::text IS NOT NULL OR {_IS_FREED})
    RETURNING {_WAS_FREED}
  ),{_NUMBERS},{_END_EVENTS},{_CALLS}
SELECT t.last_seq, EXISTS (SELECT FROM p WHERE p.freed) AS freed FROM g, t
"""  # noqa: S608 - built from constants; values are bound

END_RUN = f"""
WITH {_LOCK},{_NEW},
  g AS (
    UPDATE runs SET status = %(status)s, {_PAID}, {_FAILED}, moved_by = NULL, moved_at = now(),
                    lease_until = NULL, retry_at = CASE WHEN %(retry)s THEN now() END
      FROM l, n WHERE runs.id = %(run)s AND runs.status = 'running' AND runs.fence = %(fence)s
    RETURNING runs.id, runs.ticket_id
  ),
  s AS (
    UPDATE steps SET ended_at = now(), error_code = %(step_error)s
      FROM g WHERE steps.run_id = g.id AND steps.ended_at IS NULL
  ),
  p AS (
    UPDATE tickets SET {_ESCALATED}, {_FREED}, version = version + 1
      FROM g WHERE tickets.id = g.ticket_id AND (%(reason)s::text IS NOT NULL OR {_IS_FREED})
    RETURNING {_WAS_FREED}
  ),{_NUMBERS},{_END_EVENTS},{_CALLS}
SELECT t.last_seq, EXISTS (SELECT FROM p WHERE p.freed) AS freed FROM g, t
"""  # noqa: S608 - built from constants; values are bound

SAVE_CALLS = f"""
WITH g AS (SELECT %(run)s::uuid AS id),{_CALLS}
UPDATE runs SET tokens_in = runs.tokens_in + new.tokens_in, tokens_out = runs.tokens_out + new.tokens_out,
                cost_micro = runs.cost_micro + new.cost_micro, model_used = coalesce(%(model)s::text, runs.model_used)
  FROM (SELECT sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out, sum(cost_micro) AS cost_micro FROM c) new
 WHERE runs.id = %(run)s AND new.tokens_in IS NOT NULL
RETURNING runs.id
"""  # noqa: S608 - built from constants; values are bound

LANDED = """
SELECT NULL AS last_seq FROM runs WHERE id = %(run)s AND fence = %(fence)s AND status = %(status)s
"""

RENEW_LEASES = """
UPDATE runs SET lease_until = clock_timestamp() + make_interval(secs => %(lease_s)s)
 WHERE id IN (
       SELECT runs.id
         FROM runs JOIN unnest(%(runs)s::uuid[], %(fences)s::int[]) AS mine (id, fence) ON runs.id = mine.id
        WHERE runs.fence = mine.fence AND runs.status = 'running'
          FOR NO KEY UPDATE OF runs SKIP LOCKED)
RETURNING runs.id
"""
"""A run that somebody is just moving is left for the next renewal: waiting for it, all the others would run out."""

LOST_LEASES = """
SELECT runs.id
  FROM runs JOIN unnest(%(runs)s::uuid[], %(fences)s::int[]) AS mine (id, fence) ON runs.id = mine.id
 WHERE runs.fence <> mine.fence OR runs.status = ANY(%(ended)s::text[])
"""
