-- Entries are partitioned by the time in their transaction ID. The existing table becomes the first
-- partition, without a scan: it accepts every ID until `store/partitions.py` limits it and adds
-- partitions for months.
DROP TRIGGER entries_are_final ON entries;
ALTER TABLE entries RENAME TO entries_initial;
ALTER INDEX entries_pkey RENAME TO entries_initial_pkey;

CREATE TABLE entries (LIKE entries_initial INCLUDING CONSTRAINTS) PARTITION BY RANGE (transaction_id);
ALTER TABLE entries ADD PRIMARY KEY (transaction_id, position);
CREATE TRIGGER entries_are_final BEFORE UPDATE OR DELETE ON entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_are_kept BEFORE TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE entries ATTACH PARTITION entries_initial FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
