-- migration: expand
-- Cash-outs that an agent has asked for with the agent's PIN and the customer confirms with the
-- customer's PIN. An open request ends at `expires_at`, even if its status was not updated yet.
CREATE TABLE cash_out_requests (
    id bigint PRIMARY KEY,
    agent_id bigint NOT NULL,
    subscriber_id bigint NOT NULL,
    card_serial text,
    amount bigint NOT NULL CHECK (amount > 0),
    currency text NOT NULL,
    status text NOT NULL CHECK (status IN ('open', 'confirmed', 'declined', 'expired')),
    transaction_id bigint,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    scope text NOT NULL,                    -- whose request_id it is
    request_id text NOT NULL,
    fingerprint bytea NOT NULL,
    CHECK ((status = 'confirmed') = (transaction_id IS NOT NULL)),
    UNIQUE (scope, request_id)
);
CREATE UNIQUE INDEX cash_out_requests_open ON cash_out_requests (subscriber_id)
    WHERE status = 'open';
