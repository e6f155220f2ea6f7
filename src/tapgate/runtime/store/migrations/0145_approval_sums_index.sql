-- migration: expand concurrently
DROP INDEX CONCURRENTLY IF EXISTS approvals_counted_for;
CREATE INDEX CONCURRENTLY approvals_counted_for
    ON approvals (coalesce(counted_for, maker_person), updated_at);
