-- migration: expand
-- Links with which an admin sets a password: for a new admin, or after a reset.
CREATE TABLE admin_invitations (
    admin_id bigint PRIMARY KEY REFERENCES admins (id),  -- a new link replaces the previous one
    token_hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
