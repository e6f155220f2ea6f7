-- Who may call. Nothing here can be used to call: only hashes, and secrets sealed by the vault.

CREATE TABLE admins (
    id bigint PRIMARY KEY,
    email text NOT NULL,                    -- lower case
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('system_admin', 'compliance_user', 'support_user',
                                       'finance_user')),
    password_hash text NOT NULL,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled')),
    created_at timestamptz NOT NULL,
    last_login_at timestamptz,
    CONSTRAINT one_admin_per_email UNIQUE (email)
);

-- One login and all the tokens that grew out of it.
CREATE TABLE sessions (
    id bigint PRIMARY KEY,
    admin_id bigint NOT NULL REFERENCES admins (id),
    created_at timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE INDEX sessions_admin ON sessions (admin_id);

CREATE TABLE refresh_tokens (
    token_hash bytea PRIMARY KEY,
    session_id bigint NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX refresh_tokens_session ON refresh_tokens (session_id);

CREATE TABLE login_failures (
    email text NOT NULL,
    address text NOT NULL,
    failed_at timestamptz[] NOT NULL,       -- the newest few, oldest first
    PRIMARY KEY (email, address)
);
-- By the newest failure, to find the rows that count no more.
CREATE INDEX login_failures_newest ON login_failures
    (coalesce(failed_at[cardinality(failed_at)], '-infinity'));

CREATE TABLE api_keys (
    id bigint PRIMARY KEY,
    key_hash bytea NOT NULL UNIQUE,
    prefix text NOT NULL,                   -- what may be shown of it
    name text NOT NULL,
    scopes text[] NOT NULL,
    expires_at timestamptz,
    created_by bigint NOT NULL REFERENCES admins (id),
    created_at timestamptz NOT NULL,
    deleted_at timestamptz
);

-- The keys that sign: a processor's, a terminal's, a partner's.
CREATE TABLE hmac_keys (
    id bigint PRIMARY KEY,
    processor_id bigint REFERENCES processors (id),
    terminal_id bigint REFERENCES terminals (id),
    partner_id bigint REFERENCES partners (id),
    secret bytea NOT NULL,                  -- sealed by the vault
    created_at timestamptz NOT NULL,
    deleted_at timestamptz,
    CHECK (num_nonnulls(processor_id, partner_id) = 1),
    CHECK (terminal_id IS NULL OR processor_id IS NOT NULL)
);

-- At most one open code per purpose, subscriber and asker.
CREATE TABLE one_time_codes (
    purpose text NOT NULL CHECK (purpose IN ('reset_pin', 'restricted_access')),
    subscriber_id bigint NOT NULL REFERENCES subscribers (id),
    asker text NOT NULL,
    code_hash bytea NOT NULL,
    failures smallint NOT NULL DEFAULT 0,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (purpose, subscriber_id, asker)
);

CREATE TABLE restricted_access (
    admin_id bigint NOT NULL REFERENCES admins (id),
    subscriber_id bigint NOT NULL REFERENCES subscribers (id),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (admin_id, subscriber_id)
);
