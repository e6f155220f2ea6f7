-- migration: expand
-- Warnings of the messaging provider about templates, the account and the phone number. A resolved
-- warning is kept, because reports can arrive out of order.
CREATE TABLE provider_warnings (
    kind text NOT NULL,
    subject text NOT NULL,
    state text NOT NULL,
    reason text,
    resolved boolean NOT NULL,
    occurred_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (kind, subject)
);
