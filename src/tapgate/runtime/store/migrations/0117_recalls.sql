-- migration: expand
-- Recalls: a sender asks for a transfer back. Up to the amount that the receiver has available is
-- held until the recall ends.
CREATE TABLE recalls (
    id bigint PRIMARY KEY,
    transaction_id bigint NOT NULL UNIQUE,
    sender_account bigint NOT NULL,
    receiver_account bigint NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    held_amount bigint NOT NULL CHECK (held_amount BETWEEN 0 AND amount),
    currency text NOT NULL,
    reason text,
    status text NOT NULL CHECK (status IN ('open', 'returned', 'kept', 'expired', 'decided')),
    decision text CHECK (decision IN ('return', 'release')),
    decided_by text,                        -- the admin, or the credential that reported the answer
    decision_reason text,
    reversal_id bigint,                     -- the reversal that returned the held amount
    scope text NOT NULL,                    -- whose request_id it is
    request_id text NOT NULL,
    fingerprint bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (scope, request_id)
);
CREATE INDEX recalls_open ON recalls (expires_at, id) WHERE status = 'open';
CREATE INDEX recalls_open_sender ON recalls (sender_account) WHERE status = 'open';
CREATE INDEX recalls_open_receiver ON recalls (receiver_account) WHERE status = 'open';
