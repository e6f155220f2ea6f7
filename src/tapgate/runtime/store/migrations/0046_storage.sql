-- When autovacuum runs, and how much free space pages keep: docs/years.md has the reasons. The
-- defaults depend on the size of a table, so they come late for large tables, and for queues, which
-- are small but change constantly. A fill factor applies to new pages.
ALTER TABLE accounts SET
    (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE cards SET
    (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE pins SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE idempotency_keys SET
    (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000,
     autovacuum_freeze_min_age = 0, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE partner_references SET
    (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000,
     autovacuum_freeze_min_age = 0, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE audit_entries SET
    (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000,
     autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100000);
ALTER TABLE events SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
ALTER TABLE deliveries SET
    (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE messages SET
    (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE notices SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE messenger.outbox SET
    (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE messenger.received SET
    (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE figures SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE cash_matches SET
    (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE pin_failures SET
    (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE terminals SET (fillfactor = 70);
ALTER TABLE nodes SET
    (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE sessions SET (fillfactor = 90);
ALTER TABLE refresh_tokens SET
    (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- `store/partitions.py` has the same parameters for new partitions.
DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT inhrelid::regclass FROM pg_inherits
                WHERE inhparent IN ('transactions'::regclass, 'entries'::regclass) LOOP
        EXECUTE format(
            'ALTER TABLE %s SET (autovacuum_vacuum_insert_scale_factor = 0,
                                 autovacuum_vacuum_insert_threshold = 1000000,
                                 autovacuum_freeze_min_age = 0)', part);
    END LOOP;
END $$;
