-- migration: expand
-- Lookups by payee must use the index `transactions_to`, whatever a sample of the rows says. If most
-- payments go to a few merchants, the planner concludes that every account receives a large part of
-- all payments, and reads whole months by ID to find those of one subscriber. The value takes effect
-- with the next ANALYZE. Months that are over are not analyzed automatically any more.
ALTER TABLE transactions ALTER COLUMN to_account SET (n_distinct_inherited = -0.05);
DO $$
DECLARE
    name regclass;
BEGIN
    FOR name IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'transactions'::regclass LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN to_account SET (n_distinct = -0.05)', name);
        EXECUTE format('ANALYZE %s (to_account)', name);
    END LOOP;
END $$;
