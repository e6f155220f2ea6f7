-- migration: expand
-- Closed days: the hash tree over the day's transactions, signed. A chunk has the leaf hashes of
-- 1,024 consecutive transactions, so that a proof reads one chunk and the nodes of the others.
CREATE TABLE closed_days (
    day date PRIMARY KEY,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    transactions bigint NOT NULL,
    entries bigint NOT NULL,
    totals text NOT NULL,
    merkle_root bytea,
    previous_root bytea,
    signature bytea NOT NULL,
    key_id text NOT NULL,
    closed_at timestamptz NOT NULL
);
CREATE TABLE closed_day_chunks (
    day date NOT NULL,
    number integer NOT NULL,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    node bytea NOT NULL,
    transaction_ids bigint[] NOT NULL,
    leaves bytea NOT NULL,
    PRIMARY KEY (day, number)
);
ALTER TABLE closed_day_chunks ALTER leaves SET STORAGE EXTERNAL;
CREATE INDEX closed_day_chunks_ids ON closed_day_chunks (day, last_id);
-- The start of the first open day. Every batch of the ledger reads it, and posts no earlier.
CREATE TABLE open_days (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    starts_at timestamptz NOT NULL
);
-- Keys that sign closed days. A retired key still verifies the days that it signed.
CREATE TABLE ledger_keys (
    key_id text PRIMARY KEY,
    public_key bytea NOT NULL,
    private_key bytea NOT NULL,
    created_at timestamptz NOT NULL,
    retired_at timestamptz
);
CREATE FUNCTION reject_closed_day_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a closed day never changes';
END $$;
CREATE TRIGGER closed_days_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON closed_days
    EXECUTE FUNCTION reject_closed_day_change();
CREATE TRIGGER closed_day_chunks_immutable BEFORE UPDATE OR DELETE OR TRUNCATE
    ON closed_day_chunks EXECUTE FUNCTION reject_closed_day_change();
