-- migration: expand
-- Requests with API keys and signing keys, for integrators. Bodies have no secrets and no personal
-- data.
CREATE TABLE request_logs (
    id bigint PRIMARY KEY,
    key_id bigint NOT NULL,
    caller_type text NOT NULL,
    caller_name text NOT NULL,
    method text NOT NULL,
    endpoint text NOT NULL,
    path text NOT NULL,
    query text,
    status smallint NOT NULL,
    code text,
    duration_us integer NOT NULL,
    request_id text NOT NULL,
    ip text NOT NULL,
    request_body text,
    response_body text
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE INDEX request_logs_key ON request_logs (key_id, id);
CREATE INDEX request_logs_failed ON request_logs (id) WHERE status >= 400;
CREATE INDEX request_logs_request_id ON request_logs (request_id);
