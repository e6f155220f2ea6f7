-- migration: expand
-- Back-off of a failing endpoint: failures since the last success, and when to try again.
ALTER TABLE webhook_endpoints
    ADD failures integer NOT NULL DEFAULT 0,
    ADD backoff_step smallint NOT NULL DEFAULT 0,
    ADD backoff_until timestamptz;
-- Periods whose deliveries were sent again, so that a repeated request continues and then does
-- nothing.
CREATE TABLE webhook_redeliveries (
    endpoint_id bigint NOT NULL REFERENCES webhook_endpoints (id),
    from_time timestamptz NOT NULL,
    to_time timestamptz NOT NULL,
    status text NOT NULL,
    last_delivery_id bigint NOT NULL,
    redelivered integer NOT NULL,
    is_complete boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (endpoint_id, from_time, to_time, status)
);
