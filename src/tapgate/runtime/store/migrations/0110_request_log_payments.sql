-- migration: expand
-- The idempotency key and the transaction of logged requests that move money.
ALTER TABLE request_logs ADD idempotency_key text, ADD transaction_id bigint;
