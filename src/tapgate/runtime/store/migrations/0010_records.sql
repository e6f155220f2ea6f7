-- Reading what happened: lists of transactions, and account statements.

-- By type, whatever else there is; by state, only those that are not the rule.
CREATE INDEX transactions_type ON transactions (type, id);
CREATE INDEX transactions_status ON transactions (status, id) WHERE status <> 'completed';
-- A card's history is found by its wallet; these are from before it had one.
CREATE INDEX transactions_unlinked ON transactions (card_serial, id) WHERE from_account IS NULL;
CREATE INDEX transactions_to_unlinked ON transactions (to_card_serial, id) WHERE to_account IS NULL;
-- What was reviewed moved its money later than its id says.
CREATE INDEX transactions_reviewed_from ON transactions (from_account) WHERE held > 0;
CREATE INDEX transactions_reviewed_to ON transactions (to_account) WHERE held > 0;

CREATE INDEX subscribers_restricted ON subscribers (account_id) WHERE restricted;

-- Files behind links that were handed out; kept as made, so that they say what was answered.
CREATE TABLE statements (
    id bigint PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    subscriber_id bigint NOT NULL REFERENCES subscribers (id),
    from_date date NOT NULL,
    to_date date NOT NULL,
    format text NOT NULL CHECK (format IN ('csv', 'pdf')),
    file bytea NOT NULL,                    -- compressed, sealed by the vault
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
ALTER TABLE statements ALTER COLUMN file SET STORAGE EXTERNAL;
CREATE INDEX statements_expiring ON statements (expires_at);
