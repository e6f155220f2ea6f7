-- API keys with limits of their own, and credentials whose previous secret works for a grace period.
ALTER TABLE api_keys
    ADD COLUMN rate_limit integer CHECK (rate_limit > 0),            -- null: the platform's
    ADD COLUMN burst integer CHECK (burst > 0),                      -- null: the platform's
    ADD COLUMN allowed_ips cidr[] CHECK (cardinality(allowed_ips) > 0),  -- null: any address
    ADD COLUMN last_used_at timestamptz,
    ADD COLUMN previous_key_hash bytea UNIQUE,
    ADD COLUMN previous_until timestamptz,
    ADD CONSTRAINT previous_key_ends
        CHECK ((previous_key_hash IS NULL) = (previous_until IS NULL));

ALTER TABLE partners
    ADD COLUMN previous_webhook_secret bytea,                        -- sealed by the vault
    ADD COLUMN previous_webhook_secret_until timestamptz,
    ADD CONSTRAINT previous_webhook_secret_ends
        CHECK ((previous_webhook_secret IS NULL) = (previous_webhook_secret_until IS NULL));
