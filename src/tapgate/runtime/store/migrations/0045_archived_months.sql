-- Months whose transactions and entries were moved out of the ledger (`tapgate archive`), without
-- gaps. The MAC of a month covers the month before, and its key is not in the database.
CREATE TABLE archived_months (
    first_id bigint NOT NULL UNIQUE,
    end_id bigint PRIMARY KEY CHECK (end_id > first_id),
    name text NOT NULL UNIQUE,          -- as in the names of its tables: transactions_<name>
    transactions bigint NOT NULL,
    entries bigint NOT NULL,
    reviewed_entries bigint NOT NULL,   -- of these, entries of transactions that were under review
    sums_digest bytea NOT NULL,         -- of `archived_sums` up to this month
    mac bytea NOT NULL,
    archived_at timestamptz NOT NULL,
    archived_by text NOT NULL,
    is_detached boolean NOT NULL,       -- false: the entries are detached, the transactions not yet
    files jsonb,                        -- NULL until the month is exported
    dropped_at timestamptz              -- NULL while the tables remain in the schema `archive`
);
-- Sums of the entries of these months by account.
CREATE TABLE archived_sums (
    account_id bigint PRIMARY KEY,
    amount numeric NOT NULL
) WITH (fillfactor = 50);

-- Cash-ins and cash-outs that completed after a review. Recent movements are selected by the time in
-- their ID, which for these is older. A trigger, because processes of the previous release do not
-- know the table.
CREATE TABLE released_cash (
    transaction_id bigint PRIMARY KEY,
    type text NOT NULL,
    from_account bigint NOT NULL,
    to_account bigint NOT NULL,
    amount bigint NOT NULL,
    completed_at timestamptz NOT NULL
);
CREATE INDEX released_cash_pair ON released_cash
    (least(from_account, to_account), greatest(from_account, to_account), completed_at);
CREATE FUNCTION record_released_cash() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO released_cash
    VALUES (NEW.id, NEW.type, NEW.from_account, NEW.to_account, NEW.amount, NEW.completed_at);
    -- Far more than the time for which movements are matched.
    DELETE FROM released_cash WHERE transaction_id = ANY (ARRAY(
        SELECT transaction_id FROM released_cash
        WHERE completed_at < NEW.completed_at - interval '30 days' LIMIT 100
        FOR UPDATE SKIP LOCKED));
    RETURN NULL;
END $$;
CREATE TRIGGER transactions_record_released_cash AFTER UPDATE ON transactions
    FOR EACH ROW WHEN (OLD.status = 'under_review' AND NEW.status = 'completed'
                       AND left(NEW.type, 10) = 'agent_cash')
    EXECUTE FUNCTION record_released_cash();
INSERT INTO released_cash
SELECT id, type, from_account, to_account, amount, completed_at FROM transactions
WHERE completed_at <> created_at AND completed_at > now() - interval '30 days'
  AND left(type, 10) = 'agent_cash';
