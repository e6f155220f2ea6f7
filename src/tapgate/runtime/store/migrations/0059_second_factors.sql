-- migration: expand
-- Second factors of admins, and what is known about a session.
CREATE TABLE admin_totp (
    admin_id bigint PRIMARY KEY REFERENCES admins (id),
    secret bytea,                           -- sealed; NULL until a code has confirmed it
    last_step bigint NOT NULL DEFAULT 0,    -- of the last accepted code: each step works once
    enrolled_at timestamptz,
    pending_secret bytea                    -- sealed; replaces `secret` when a code confirms it
);

CREATE TABLE admin_recovery_codes (
    admin_id bigint NOT NULL REFERENCES admins (id),
    code_hash bytea NOT NULL,
    used_at timestamptz,
    PRIMARY KEY (admin_id, code_hash)
);

ALTER TABLE sessions
    ADD is_console boolean NOT NULL DEFAULT false,
    ADD enroll_only boolean NOT NULL DEFAULT false,
    ADD factor_at timestamptz,              -- when a second factor was last verified
    ADD last_seen_at timestamptz,
    ADD ip text,
    ADD user_agent text;
