-- Transactions are partitioned by the time in their ID, like entries. A unique index of a partitioned
-- table must contain the ID, so idempotency keys and partner references have tables of their own.
DROP TRIGGER transactions_are_kept ON transactions;
DROP TRIGGER transactions_keep_their_facts ON transactions;
ALTER TABLE transactions RENAME TO transactions_initial;
ALTER INDEX transactions_pkey RENAME TO transactions_initial_pkey;
ALTER INDEX transactions_request RENAME TO transactions_initial_request;
ALTER INDEX transactions_partner_reference RENAME TO transactions_initial_partner_reference;
ALTER INDEX transactions_from RENAME TO transactions_initial_from;
ALTER INDEX transactions_to RENAME TO transactions_initial_to;
ALTER INDEX transactions_original RENAME TO transactions_initial_original;
ALTER INDEX transactions_under_review RENAME TO transactions_initial_under_review;
ALTER INDEX transactions_type RENAME TO transactions_initial_type;
ALTER INDEX transactions_status RENAME TO transactions_initial_status;
ALTER INDEX transactions_unlinked RENAME TO transactions_initial_unlinked;
ALTER INDEX transactions_to_unlinked RENAME TO transactions_initial_to_unlinked;
ALTER INDEX transactions_reviewed_from RENAME TO transactions_initial_reviewed_from;
ALTER INDEX transactions_reviewed_to RENAME TO transactions_initial_reviewed_to;
ALTER INDEX transactions_failure RENAME TO transactions_initial_failure;
ALTER INDEX transactions_cash RENAME TO transactions_initial_cash;
ALTER INDEX transactions_released RENAME TO transactions_initial_released;

CREATE TABLE transactions (LIKE transactions_initial INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
    PARTITION BY RANGE (id);
ALTER TABLE transactions ADD PRIMARY KEY (id);
CREATE INDEX transactions_from ON transactions (from_account, id);
CREATE INDEX transactions_to ON transactions (to_account, id);
CREATE INDEX transactions_original ON transactions (original_id) WHERE original_id IS NOT NULL;
CREATE INDEX transactions_under_review ON transactions (from_account) WHERE status = 'under_review';
CREATE INDEX transactions_type ON transactions (type, id);
CREATE INDEX transactions_status ON transactions (status, id) WHERE status <> 'completed';
CREATE INDEX transactions_unlinked ON transactions (card_serial, id) WHERE from_account IS NULL;
CREATE INDEX transactions_to_unlinked ON transactions (to_card_serial, id) WHERE to_account IS NULL;
CREATE INDEX transactions_reviewed_from ON transactions (from_account) WHERE held > 0;
CREATE INDEX transactions_reviewed_to ON transactions (to_account) WHERE held > 0;
CREATE INDEX transactions_failure ON transactions (failure_code, id) WHERE failure_code IS NOT NULL;
CREATE INDEX transactions_cash ON transactions
    (least(from_account, to_account), greatest(from_account, to_account), completed_at)
    WHERE left(type, 10) = 'agent_cash';
CREATE INDEX transactions_released ON transactions (completed_at) WHERE completed_at <> created_at;
-- For plans over all partitions; 0017 explains the value. Each partition has it as `n_distinct`.
ALTER TABLE transactions ALTER COLUMN from_account SET (n_distinct_inherited = -0.05);

CREATE TABLE idempotency_keys (
    scope text NOT NULL,
    request_id text NOT NULL,
    transaction_id bigint NOT NULL,
    PRIMARY KEY (scope, request_id)
);
-- References of transactions that have not failed. A reference can be used again after a failure.
CREATE TABLE partner_references (
    partner_id bigint NOT NULL,
    reference text NOT NULL,
    transaction_id bigint NOT NULL,
    PRIMARY KEY (partner_id, reference)
);
-- Keys of existing transactions stay in the unique indexes of the first partition until
-- `tapgate partition` copies them. While this row exists, they are looked up there as well.
INSERT INTO installation
SELECT 'uncopied_keys', 'yes' WHERE EXISTS (SELECT FROM transactions_initial);

-- Triggers, because processes of the previous release do not know the tables. They cost less than a
-- statement of their own.
CREATE FUNCTION add_transaction_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO idempotency_keys
    SELECT scope, request_id, id FROM added WHERE request_id IS NOT NULL;
    INSERT INTO partner_references
    SELECT partner_id, partner_reference, id FROM added
    WHERE partner_reference IS NOT NULL AND status <> 'failed';
    RETURN NULL;
END $$;
CREATE FUNCTION release_partner_reference() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM partner_references
    WHERE partner_id = NEW.partner_id AND reference = NEW.partner_reference
      AND transaction_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER transactions_add_keys AFTER INSERT ON transactions
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_transaction_keys();
CREATE TRIGGER transactions_release_reference AFTER UPDATE ON transactions
    FOR EACH ROW WHEN (NEW.partner_reference IS NOT NULL AND NEW.status = 'failed'
                       AND OLD.status <> 'failed')
    EXECUTE FUNCTION release_partner_reference();

CREATE TRIGGER transactions_are_kept BEFORE DELETE ON transactions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_are_kept_all BEFORE TRUNCATE ON transactions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_keep_their_facts BEFORE UPDATE ON transactions
    FOR EACH ROW WHEN (
        (OLD.id, OLD.type, OLD.amount, OLD.fee_amount, OLD.currency, OLD.created_at)
            IS DISTINCT FROM
        (NEW.id, NEW.type, NEW.amount, NEW.fee_amount, NEW.currency, NEW.created_at)
        OR OLD.from_account IS DISTINCT FROM NEW.from_account
        OR OLD.to_account IS DISTINCT FROM NEW.to_account
        OR OLD.original_id IS DISTINCT FROM NEW.original_id
        OR OLD.usage_day IS DISTINCT FROM NEW.usage_day
        OR OLD.scope IS DISTINCT FROM NEW.scope
        OR OLD.request_id IS DISTINCT FROM NEW.request_id
        OR OLD.answer IS DISTINCT FROM NEW.answer
        OR OLD.status IN ('failed', 'refunded')
    ) EXECUTE FUNCTION refuse_change();
ALTER TABLE transactions ATTACH PARTITION transactions_initial
    FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
