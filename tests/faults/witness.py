"""Triggers in an arena's database that write down what no row remembers: every move of a run or a ticket with who wrote
it, and what must never be written at all. A process is known by its connection's application_name, "role:pid"."""

WATCH = """
DROP SCHEMA IF EXISTS witness CASCADE;
CREATE SCHEMA witness;
CREATE TABLE witness.moves (
    place bigserial PRIMARY KEY, run_id uuid, thread_id uuid, was text, became text, was_fence int, fence int,
    owner text, writer text);
CREATE TABLE witness.ticket_moves (place bigserial PRIMARY KEY, ticket_id uuid, was text, became text, writer text);
CREATE TABLE witness.complaints (place bigserial PRIMARY KEY, text text);

CREATE FUNCTION witness.writer_holds(owner text) RETURNS boolean LANGUAGE sql AS $$
    SELECT current_setting('application_name') NOT LIKE 'worker:%'
        OR position(':' || split_part(current_setting('application_name'), ':', 2) || ':' IN coalesce(owner, '')) > 0
$$;
CREATE FUNCTION witness.complain(what text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO witness.complaints (text) VALUES (what || ' (by ' || current_setting('application_name') || ')')
$$;

CREATE FUNCTION witness.run_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR OLD.status <> NEW.status OR OLD.fence <> NEW.fence THEN
        INSERT INTO witness.moves (run_id, thread_id, was, became, was_fence, fence, owner, writer)
        VALUES (NEW.id, NEW.thread_id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status,
                CASE WHEN TG_OP = 'UPDATE' THEN OLD.fence END, NEW.fence, NEW.lease_owner,
                current_setting('application_name'));
    END IF;
    -- A worker sweeps too when it starts; it may move what nobody holds any more.
    IF TG_OP = 'UPDATE' AND OLD.status = 'running' AND NEW.fence = OLD.fence AND OLD.lease_until > now()
       AND (OLD.status <> NEW.status OR OLD.cur_step <> NEW.cur_step) AND NOT witness.writer_holds(OLD.lease_owner) THEN
        PERFORM witness.complain('run ' || NEW.id || ' was moved by a worker that does not hold it');
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
        PERFORM witness.complain('a person''s class of ticket ' || NEW.id || ' was overwritten');
    END IF;
    IF OLD.status <> NEW.status THEN
        INSERT INTO witness.ticket_moves (ticket_id, was, became, writer)
        VALUES (NEW.id, OLD.status, NEW.status, current_setting('application_name'));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE ON tickets FOR EACH ROW EXECUTE FUNCTION witness.ticket_changed();

CREATE FUNCTION witness.never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM witness.complain('a row of ' || TG_TABLE_NAME || ' was changed or deleted');
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION witness.never();
CREATE TRIGGER witness AFTER UPDATE OR DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION witness.never();
CREATE TRIGGER witness AFTER UPDATE OR DELETE ON artifacts FOR EACH ROW EXECUTE FUNCTION witness.never();
"""
