-- migration: expand
-- Bank statements and what their lines were matched with.
CREATE TABLE bank_statements (
    id bigint PRIMARY KEY,
    format text NOT NULL CHECK (format IN ('camt.053', 'mt940', 'csv')),
    account text NOT NULL,
    bank_account_id bigint,                 -- the platform's account with this number, if any
    currency text NOT NULL,
    from_day date NOT NULL,
    to_day date NOT NULL,
    opening_balance bigint,
    closing_balance bigint,
    skipped integer NOT NULL,               -- lines that an earlier statement has
    content_hash bytea NOT NULL,
    created_by bigint NOT NULL,
    created_at timestamptz NOT NULL,
    matched_at timestamptz,                 -- when all lines were compared; null while it goes on
    scope text,                             -- whose request_id it is
    request_id text,
    fingerprint bytea,
    CONSTRAINT bank_statements_content UNIQUE (account, content_hash),
    UNIQUE (scope, request_id)
);
CREATE INDEX bank_statements_balances ON bank_statements (account, to_day, id)
    WHERE closing_balance IS NOT NULL;
CREATE INDEX bank_statements_pending ON bank_statements (id) WHERE matched_at IS NULL;

CREATE TABLE bank_statement_lines (
    id bigint PRIMARY KEY,
    statement_id bigint NOT NULL REFERENCES bank_statements (id),
    account text NOT NULL,                  -- of the statement, to find known lines
    day date NOT NULL,
    amount bigint NOT NULL CHECK (amount <> 0),
    reference text,
    description text,
    status text NOT NULL CHECK (status IN ('unmatched', 'matched', 'posted', 'ignored')),
    transaction_id bigint,                  -- the transaction that moved the platform's cash
    payout_id bigint,
    moved_payout boolean NOT NULL DEFAULT false,  -- whether the match paid or returned the payout
    reason text,
    CHECK ((status IN ('matched', 'posted')) = (transaction_id IS NOT NULL))
);
CREATE INDEX bank_statement_lines_statement ON bank_statement_lines (statement_id, status, id);
CREATE INDEX bank_statement_lines_known ON bank_statement_lines (account, day, amount);
CREATE INDEX bank_statement_lines_day ON bank_statement_lines (day, status);
CREATE INDEX bank_statement_lines_unmatched ON bank_statement_lines (id)
    WHERE status = 'unmatched';
CREATE UNIQUE INDEX bank_statement_lines_transaction ON bank_statement_lines (transaction_id);

-- Idempotency keys of changes to lines.
CREATE TABLE bank_line_requests (
    scope text NOT NULL,
    request_id text NOT NULL,
    fingerprint bytea NOT NULL,
    line_id bigint NOT NULL,
    PRIMARY KEY (scope, request_id)
);

CREATE TABLE csv_mappings (
    bank_account_id bigint PRIMARY KEY REFERENCES bank_accounts (id),
    mapping jsonb NOT NULL,
    updated_by bigint NOT NULL,
    updated_at timestamptz NOT NULL
);
