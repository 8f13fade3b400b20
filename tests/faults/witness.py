"""Triggers in an arena's database that write down what no row remembers: every move of a run or a ticket with who wrote
it, and what must never be written at all, by the name of the rule. A process is known by its connection's
application_name, "role:pid"."""

WATCH = """
DROP SCHEMA IF EXISTS witness CASCADE;
CREATE SCHEMA witness;
CREATE TABLE witness.moves (
    place bigserial PRIMARY KEY, run_id uuid, thread_id uuid, was text, became text, was_fence int, fence int,
    owner text, writer text);
CREATE TABLE witness.ticket_moves (place bigserial PRIMARY KEY, ticket_id uuid, was text, became text, writer text);
CREATE TABLE witness.reply_moves (
    place bigserial PRIMARY KEY, delivery_id uuid, was text, became text, was_attempts int, attempts int, writer text);
CREATE TABLE witness.complaints (place bigserial PRIMARY KEY, rule text, text text);

CREATE FUNCTION witness.may_move(owner text) RETURNS boolean LANGUAGE sql AS $$
    SELECT current_setting('application_name') LIKE 'web:%'
        OR current_setting('application_name') LIKE 'worker:%'
       AND position(':' || split_part(current_setting('application_name'), ':', 2) || ':' IN coalesce(owner, '')) > 0
$$;
CREATE FUNCTION witness.complain(rule text, what text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO witness.complaints (rule, text)
    VALUES (rule, what || ' (by ' || current_setting('application_name') || ')')
$$;

CREATE FUNCTION witness.run_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR OLD.status <> NEW.status OR OLD.fence <> NEW.fence THEN
        INSERT INTO witness.moves (run_id, thread_id, was, became, was_fence, fence, owner, writer)
        VALUES (NEW.id, NEW.thread_id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status,
                CASE WHEN TG_OP = 'UPDATE' THEN OLD.fence END, NEW.fence, NEW.lease_owner,
                current_setting('application_name'));
    END IF;
    -- People may stop a run that is held. The schedule sweeps, and so does a worker when it starts: both may move what
    -- nobody holds any more.
    IF TG_OP = 'UPDATE' AND OLD.status = 'running' AND NEW.fence = OLD.fence AND OLD.lease_until > clock_timestamp()
       AND (OLD.status <> NEW.status OR OLD.cur_step <> NEW.cur_step) AND NOT witness.may_move(OLD.lease_owner) THEN
        PERFORM witness.complain('leases_are_respected', 'run ' || NEW.id || ' was moved while another held it');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER INSERT OR UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION witness.run_moved();

CREATE FUNCTION witness.ticket_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.priority_set_by = 'person' AND current_setting('application_name') LIKE 'worker:%'
        AND (OLD.priority, OLD.priority_set_by) IS DISTINCT FROM (NEW.priority, NEW.priority_set_by))
       OR (OLD.category_set_by = 'person' AND current_setting('application_name') LIKE 'worker:%'
           AND (OLD.category, OLD.category_set_by) IS DISTINCT FROM (NEW.category, NEW.category_set_by)) THEN
        PERFORM witness.complain('classes_of_people_stay', 'the class of ticket ' || NEW.id || ' was overwritten');
    END IF;
    IF OLD.status <> NEW.status THEN
        INSERT INTO witness.ticket_moves (ticket_id, was, became, writer)
        VALUES (NEW.id, OLD.status, NEW.status, current_setting('application_name'));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE ON tickets FOR EACH ROW EXECUTE FUNCTION witness.ticket_changed();

-- Looks when a transaction commits: a person's command moves the ticket first and its run after it.
CREATE FUNCTION witness.ticket_and_run_agree() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    odd record;
BEGIN
    SELECT tickets.number, tickets.status AS ticket, runs.id, runs.status AS run INTO odd
      FROM tickets JOIN runs ON runs.ticket_id = tickets.id
     WHERE tickets.id = (to_jsonb(NEW) ->> TG_ARGV[0])::uuid
       AND tickets.status IN ('resolved', 'closed', 'spam')
       AND runs.status NOT IN ('completed', 'failed', 'cancelled', 'superseded');
    IF FOUND THEN
        PERFORM witness.complain('done_tickets_rest', 'ticket ' || odd.number || ' is ' || odd.ticket ||
                                 ' and its run ' || odd.id || ' is ' || odd.run);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER witness_agrees AFTER UPDATE OF status ON tickets DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION witness.ticket_and_run_agree('id');
CREATE CONSTRAINT TRIGGER witness_agrees AFTER INSERT ON runs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION witness.ticket_and_run_agree('ticket_id');

CREATE FUNCTION witness.reply_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO witness.reply_moves (delivery_id, became, attempts, writer)
        VALUES (NEW.id, NEW.state, NEW.attempts, current_setting('application_name'));
    ELSIF OLD.state <> NEW.state OR OLD.attempts <> NEW.attempts THEN
        INSERT INTO witness.reply_moves (delivery_id, was, became, was_attempts, attempts, writer)
        VALUES (NEW.id, OLD.state, NEW.state, OLD.attempts, NEW.attempts, current_setting('application_name'));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER INSERT OR UPDATE ON deliveries FOR EACH ROW EXECUTE FUNCTION witness.reply_moved();

CREATE FUNCTION witness.never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM witness.complain('records_are_kept', 'a row of ' || TG_TABLE_NAME || ' was changed or deleted');
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION witness.never();
CREATE TRIGGER witness AFTER UPDATE OR DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION witness.never();
CREATE TRIGGER witness AFTER UPDATE OR DELETE ON artifacts FOR EACH ROW EXECUTE FUNCTION witness.never();
"""
