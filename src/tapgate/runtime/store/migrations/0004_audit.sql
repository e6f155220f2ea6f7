-- What happened, who did it. Append-only; the chain is sealed afterwards, in order of `sequence`.

CREATE TABLE audit_entries (
    id bigint PRIMARY KEY,
    -- Before `sequence` on purpose: a writer has its xid before it has its number, so that the
    -- sealer knows when every number up to one is either there or never will be.
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    sequence bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    occurred_at timestamptz(3) NOT NULL,    -- as exact as it is shown: the chain covers all of it
    event text NOT NULL,
    actor jsonb NOT NULL,
    actor_id text NOT NULL GENERATED ALWAYS AS (actor ->> 'id') STORED,
    resource_type text NOT NULL,
    resource_id text,
    result text NOT NULL CHECK (result IN ('success', 'failure', 'denied')),
    reason text,
    changes jsonb NOT NULL,
    ip text,
    request_id text,
    previous_hash bytea,
    hash bytea
);
CREATE INDEX audit_unsealed ON audit_entries (sequence) WHERE hash IS NULL;
CREATE INDEX audit_resource ON audit_entries (resource_id, sequence);
CREATE INDEX audit_actor ON audit_entries (actor_id, sequence);
CREATE INDEX audit_event ON audit_entries (event, sequence);
CREATE INDEX audit_time ON audit_entries (occurred_at);

-- The end of the chain, so that cutting it off shows too.
CREATE TABLE audit_head (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    sequence bigint NOT NULL,
    hash bytea NOT NULL
);
INSERT INTO audit_head (sequence, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit_entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_is_kept_all BEFORE TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- The only change there is: an unsealed entry gets its two hashes.
CREATE FUNCTION refuse_unless_sealing() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- A generated column of NEW is not there yet; it follows from another that is compared.
    not_compared CONSTANT text[] := '{hash,previous_hash,actor_id}';
BEGIN
    IF OLD.hash IS NULL AND NEW.hash IS NOT NULL AND
       to_jsonb(OLD) - not_compared = to_jsonb(NEW) - not_compared THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'UPDATE of audit_entries is refused: it is append-only'
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit_entries
    FOR EACH ROW EXECUTE FUNCTION refuse_unless_sealing();

-- The head only moves on.
CREATE TRIGGER audit_head_is_kept BEFORE DELETE ON audit_head
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_head_is_kept_all BEFORE TRUNCATE ON audit_head
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_head_moves_on BEFORE UPDATE ON audit_head
    FOR EACH ROW WHEN (NEW.sequence <= OLD.sequence) EXECUTE FUNCTION refuse_change();
