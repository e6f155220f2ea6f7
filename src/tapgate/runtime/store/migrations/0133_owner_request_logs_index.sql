-- migration: expand concurrently
-- An owner's logged requests, newest first.
DROP INDEX CONCURRENTLY IF EXISTS request_logs_owner;
CREATE INDEX CONCURRENTLY request_logs_owner ON request_logs (owner_id, id)
    WHERE owner_id IS NOT NULL;
