-- migration: expand
-- Float requests. From `finance_at`, an open request waits for finance: a sub-agent's super-agent is
-- asked first.
CREATE TABLE float_requests (
    id bigint PRIMARY KEY,
    agent_id bigint NOT NULL,
    parent_agent_id bigint,
    amount bigint NOT NULL CHECK (amount > 0),
    currency text NOT NULL,
    note text,
    status text NOT NULL CHECK (status IN ('open', 'funded', 'declined', 'cancelled')),
    finance_at timestamptz NOT NULL,
    transaction_id bigint,
    reason text,                            -- of the decline
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    scope text,                             -- whose request_id it is
    request_id text,
    fingerprint bytea,
    CHECK ((status = 'funded') = (transaction_id IS NOT NULL)),
    UNIQUE (scope, request_id)
);
CREATE INDEX float_requests_open ON float_requests (finance_at, id) WHERE status = 'open';
CREATE INDEX float_requests_agent ON float_requests (agent_id, id);
CREATE INDEX float_requests_parent ON float_requests (parent_agent_id, id)
    WHERE parent_agent_id IS NOT NULL;
