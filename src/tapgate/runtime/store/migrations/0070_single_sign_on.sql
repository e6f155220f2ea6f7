-- migration: expand
-- Admins who sign in with an identity provider (OpenID Connect) instead of a password.
CREATE TABLE admin_identities (
    admin_id bigint PRIMARY KEY REFERENCES admins (id),
    issuer text NOT NULL,
    subject text NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT one_admin_per_identity UNIQUE (issuer, subject)
);

-- Each `state` of a sign-in works once.
CREATE TABLE oidc_logins (
    state_hash bytea PRIMARY KEY,
    sealed_identity bytea,                  -- verified by the ID token, until a session starts
    expires_at timestamptz NOT NULL
);
CREATE INDEX oidc_logins_expires_at ON oidc_logins (expires_at);

ALTER TABLE sessions ADD is_sso boolean NOT NULL DEFAULT false;
