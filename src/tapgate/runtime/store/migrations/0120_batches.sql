-- migration: expand
-- Batches: credits to many wallets. The ledger locks the row of a running batch, and updates its
-- counters in the database transaction that pays a line.
CREATE TABLE batches (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    partner_id bigint,                      -- null: the platform pays from cash
    status text NOT NULL CHECK (status IN (
        'draft', 'validated', 'running', 'completed', 'completed_with_errors', 'cancelled')),
    lines integer NOT NULL DEFAULT 0,
    valid integer NOT NULL DEFAULT 0,
    invalid integer NOT NULL DEFAULT 0,
    paid integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    total_amount bigint NOT NULL DEFAULT 0,
    paid_amount bigint NOT NULL DEFAULT 0,
    currency text NOT NULL,
    created_by bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    completed_at timestamptz,
    scope text,                             -- whose request_id it is
    request_id text,
    fingerprint bytea,
    lines_digest bytea,                     -- the same for the same lines in any order
    lines_at timestamptz,
    run_by text,                            -- who has started it, as in transactions
    approval_id bigint,
    run_scope text,
    run_request_id text,
    run_fingerprint bytea,
    leased_until timestamptz,               -- by the process that pays the lines
    UNIQUE (scope, request_id),
    UNIQUE (run_scope, run_request_id)
);
CREATE INDEX batches_running ON batches (id) WHERE status = 'running';
CREATE INDEX batches_digest ON batches (lines_digest) WHERE lines_digest IS NOT NULL;

CREATE TABLE batch_lines (
    batch_id bigint NOT NULL REFERENCES batches,
    row bigint NOT NULL,
    phone_number text,
    card_serial text,
    amount_text text NOT NULL,              -- as uploaded
    amount bigint,                          -- null: not an amount
    reference text NOT NULL,
    subscriber_id bigint,                   -- the receiver, found by the validation
    -- Pending lines of a canceled batch are skipped. A pending line with a transaction is under
    -- review.
    status text NOT NULL CHECK (status IN ('pending', 'invalid', 'paid', 'failed')),
    code text,
    problem text,                           -- the column that is wrong, found while reading the file
    transaction_id bigint,
    PRIMARY KEY (batch_id, row)
);
CREATE INDEX batch_lines_under_review ON batch_lines (transaction_id)
    WHERE status = 'pending' AND transaction_id IS NOT NULL;
