-- migration: expand
-- Who created a key, and who rotated it last. Unknown for earlier keys and rotations.
ALTER TABLE api_keys ADD rotated_at timestamptz;
ALTER TABLE hmac_keys ADD created_by bigint;
ALTER TABLE webhook_endpoints
    ADD created_by bigint,
    ADD rotated_by bigint,
    ADD rotated_at timestamptz;

-- ID token of a session of single sign-on, sealed, with which it ends at the provider.
ALTER TABLE sessions ADD sealed_id_token bytea;
