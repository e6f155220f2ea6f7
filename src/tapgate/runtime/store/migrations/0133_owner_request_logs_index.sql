-- migration: expand concurrently
-- An owner's logged requests, newest first, and statements.
DROP INDEX CONCURRENTLY IF EXISTS request_logs_owner;
CREATE INDEX CONCURRENTLY request_logs_owner ON request_logs (owner_id, id)
    WHERE owner_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS statements_owner;
CREATE INDEX CONCURRENTLY statements_owner ON statements (owner_id) WHERE owner_id IS NOT NULL;
