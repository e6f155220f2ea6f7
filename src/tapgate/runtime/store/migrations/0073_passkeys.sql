-- migration: expand
-- Passkeys of admins, and the challenges that were used.
CREATE TABLE admin_passkeys (
    id bigint PRIMARY KEY,
    admin_id bigint NOT NULL REFERENCES admins (id),
    credential_id bytea NOT NULL CONSTRAINT one_passkey_per_credential UNIQUE,
    public_key bytea NOT NULL,              -- in COSE format
    sign_count bigint NOT NULL,             -- of the last use; 0 if the authenticator has no counter
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz
);

CREATE INDEX passkeys_by_admin ON admin_passkeys (admin_id, id);

-- Challenges are signed instead of stored. Only a used one has a row, so that it works once.
CREATE TABLE used_passkey_challenges (
    nonce bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);

CREATE INDEX used_passkey_challenges_by_expiry ON used_passkey_challenges (expires_at);
