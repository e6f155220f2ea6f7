-- Webhook endpoints can be paused and disabled, and keep their previous secret while it still signs.
ALTER TABLE webhook_endpoints
    ADD status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'disabled')),
    ADD status_reason text,
    ADD status_changed_at timestamptz NOT NULL DEFAULT now(),
    ADD failing_since timestamptz,              -- first attempt of the current series of failures
    ADD last_failure_at timestamptz,            -- latest failed attempt
    ADD previous_secret bytea,                  -- sealed by the vault
    ADD previous_secret_expires_at timestamptz,
    ADD CHECK ((previous_secret IS NULL) = (previous_secret_expires_at IS NULL));
UPDATE webhook_endpoints SET status_changed_at = created_at;

-- The last attempt: how long the response took, and how its body begins.
ALTER TABLE deliveries
    ADD duration_ms integer,
    ADD response text CHECK (octet_length(response) <= 1024);
