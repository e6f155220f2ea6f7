-- migration: expand
-- Transactions that completed after a review. Statements and reports select transactions by the time
-- in their ID, which for these is older. Without this table, they would search all partitions. A
-- trigger, because processes of the previous release do not know the table.
CREATE TABLE released_transactions (
    transaction_id bigint PRIMARY KEY,
    from_account bigint,
    to_account bigint,
    completed_at timestamptz NOT NULL
);
CREATE INDEX released_transactions_from ON released_transactions (from_account, completed_at);
CREATE INDEX released_transactions_to ON released_transactions (to_account, completed_at);
CREATE INDEX released_transactions_time ON released_transactions (completed_at);
CREATE FUNCTION record_released_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO released_transactions
    VALUES (NEW.id, NEW.from_account, NEW.to_account, NEW.completed_at);
    RETURN NULL;
END $$;
CREATE TRIGGER transactions_record_released AFTER UPDATE ON transactions
    FOR EACH ROW WHEN (OLD.completed_at IS NULL AND NEW.completed_at IS NOT NULL)
    EXECUTE FUNCTION record_released_transaction();
-- Uses the index of released transactions, whatever the statistics say.
SET LOCAL enable_seqscan = off;
INSERT INTO released_transactions
SELECT id, from_account, to_account, completed_at FROM transactions
WHERE completed_at <> created_at;
SET LOCAL enable_seqscan = on;
