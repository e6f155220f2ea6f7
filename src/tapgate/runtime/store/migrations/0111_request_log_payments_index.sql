-- migration: expand concurrently
-- Logged requests by idempotency key, for the search, and by transaction, for its page.
DROP INDEX CONCURRENTLY IF EXISTS request_logs_idempotency_key;
CREATE INDEX CONCURRENTLY request_logs_idempotency_key ON request_logs (idempotency_key)
    WHERE idempotency_key IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS request_logs_transaction;
CREATE INDEX CONCURRENTLY request_logs_transaction ON request_logs (transaction_id)
    WHERE transaction_id IS NOT NULL;
