-- Who is told what happens here, and what they are told.
CREATE TABLE webhook_endpoints (
    id bigint PRIMARY KEY,
    url text NOT NULL,
    events text[] NOT NULL,                 -- `*`: all of them
    secret bytea NOT NULL,                  -- sealed by the vault
    created_at timestamptz NOT NULL,
    deleted_at timestamptz
);

-- Only what somebody wants to be told.
CREATE TABLE events (
    id bigint PRIMARY KEY,
    type text NOT NULL,
    subject_id bigint,                      -- of what the ledger told: its record is looked up
    data jsonb,                             -- the record, as it is told
    occurred_at timestamptz NOT NULL,
    CHECK (num_nonnulls(subject_id, data) >= 1)
);

CREATE TABLE deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id bigint NOT NULL REFERENCES events (id),
    endpoint_id bigint NOT NULL REFERENCES webhook_endpoints (id),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts smallint NOT NULL DEFAULT 0,
    last_status smallint,                   -- what the endpoint answered last
    next_attempt_at timestamptz,
    created_at timestamptz NOT NULL,
    CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL)),
    UNIQUE (event_id, endpoint_id)          -- once per event and endpoint
);
CREATE INDEX deliveries_due ON deliveries (next_attempt_at) WHERE status = 'pending';
CREATE INDEX deliveries_endpoint ON deliveries (endpoint_id, id);
