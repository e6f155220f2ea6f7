-- migration: expand
-- Disputes of card payments, at most one per payment. `scope`, `request_id` and `fingerprint`
-- recognize a repeated request.
CREATE TABLE IF NOT EXISTS disputes (
    id bigint PRIMARY KEY,
    transaction_id bigint NOT NULL UNIQUE,
    subscriber_id bigint NOT NULL REFERENCES subscribers,
    processor_id bigint NOT NULL REFERENCES processors,
    amount bigint NOT NULL CHECK (amount > 0),
    currency text NOT NULL,
    reason text NOT NULL,
    description text,
    status text NOT NULL CHECK (
        status IN ('open', 'answered', 'refunded', 'rejected', 'withdrawn')),
    merchant_response text,
    decision_reason text,
    due_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    scope text,
    request_id text,
    fingerprint bytea,
    UNIQUE (scope, request_id)
);
CREATE INDEX IF NOT EXISTS disputes_subscriber ON disputes (subscriber_id, id);
CREATE INDEX IF NOT EXISTS disputes_processor ON disputes (processor_id, id);
CREATE INDEX IF NOT EXISTS disputes_undecided ON disputes (id) WHERE status IN ('open', 'answered');
