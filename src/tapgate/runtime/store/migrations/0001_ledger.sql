-- The books. Rows that money is decided on live in `accounts`: whoever holds the lock on an
-- account's row holds everything that is decided about its owner (balance, limits used, state,
-- PIN tries). There are no foreign keys on the tables a payment writes: checking one locks the
-- account's row, also of the accounts that are never locked; `tapgate verify` looks for orphans.

CREATE SEQUENCE process_slots MINVALUE 0 MAXVALUE 1023 START 0 CYCLE;

CREATE TABLE installation (
    name text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE accounts (
    id bigint PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('wallet', 'float', 'commission', 'settlement', 'clearing',
                                       'fees', 'commission_expense', 'cash')),
    owner_id bigint,                        -- null: the platform's own
    holder_name text NOT NULL,
    public_name text NOT NULL,              -- what a merchant or another subscriber may see of it
    currency text NOT NULL,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'blocked', 'closed')),
    status_reason text,
    kyc_level smallint CHECK (kyc_level BETWEEN 1 AND 3),
    checked boolean NOT NULL,               -- false: never locked, its balance is its entries' sum
    balance bigint NOT NULL DEFAULT 0,
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
    overdraft bigint NOT NULL DEFAULT 0 CHECK (overdraft >= 0),
    usage_day date,                         -- the day that day_used, and the month that month_used, count
    day_used bigint NOT NULL DEFAULT 0 CHECK (day_used >= 0),
    month_used bigint NOT NULL DEFAULT 0 CHECK (month_used >= 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT never_overdrawn CHECK (NOT checked OR balance - held + overdraft >= 0),
    CONSTRAINT wallets_have_a_level CHECK ((kind = 'wallet') = (kyc_level IS NOT NULL))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX accounts_owner ON accounts (owner_id, kind) NULLS NOT DISTINCT;

CREATE TABLE transactions (
    id bigint PRIMARY KEY,
    type text NOT NULL CHECK (type IN (
        'transfer_p2p', 'transfer', 'agent_cashin', 'agent_cashout', 'agent_fund', 'agent_transfer',
        'commission_payout', 'pos_payment', 'online_payment', 'partner_fund', 'partner_deposit',
        'processor_transfer', 'refund')),
    status text NOT NULL CHECK (status IN ('completed', 'failed', 'under_review',
                                           'partially_refunded', 'refunded')),
    channel text NOT NULL CHECK (channel IN ('api', 'pos', 'in_app', 'agent', 'partner',
                                             'messaging', 'admin')),
    amount bigint NOT NULL CHECK (amount > 0),
    fee_amount bigint NOT NULL CHECK (fee_amount >= 0),
    refunded_amount bigint NOT NULL DEFAULT 0 CHECK (refunded_amount BETWEEN 0 AND amount),
    currency text NOT NULL,
    from_account bigint,                    -- null: declined before it was known, an unlinked card
    to_account bigint,
    from_balance bigint,                    -- the balances this transaction left behind
    to_balance bigint,
    held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),  -- kept from the payer while under review
    card_serial text,                       -- the card that paid
    to_card_serial text,
    original_id bigint,                     -- the payment that a refund gives back
    usage_day date,                         -- the day it counts against the payer's limits, if it does
    scope text,                             -- whose request_id it is
    request_id text,
    fingerprint bytea,                      -- what was asked, to tell a replay from another request
    answer bytea,                           -- what was answered, for replays
    partner_id bigint,
    partner_reference text,
    failure_code text,
    context jsonb,                          -- terminal, merchant, memo, metadata
    created_at timestamptz NOT NULL,
    completed_at timestamptz
) WITH (fillfactor = 90);
CREATE UNIQUE INDEX transactions_request ON transactions (scope, request_id)
    WHERE request_id IS NOT NULL;
CREATE UNIQUE INDEX transactions_partner_reference ON transactions (partner_id, partner_reference)
    WHERE partner_reference IS NOT NULL AND status <> 'failed';
CREATE INDEX transactions_from ON transactions (from_account, id);
CREATE INDEX transactions_to ON transactions (to_account, id);
CREATE INDEX transactions_original ON transactions (original_id) WHERE original_id IS NOT NULL;
CREATE INDEX transactions_under_review ON transactions (from_account) WHERE status = 'under_review';

-- One row moves one amount from one account to another, so every transaction sums to zero.
CREATE TABLE entries (
    transaction_id bigint NOT NULL,
    position smallint NOT NULL,
    debit_account bigint NOT NULL,
    credit_account bigint NOT NULL CHECK (credit_account <> debit_account),
    amount bigint NOT NULL CHECK (amount > 0),
    PRIMARY KEY (transaction_id, position)
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: it is append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER entries_are_final BEFORE UPDATE OR DELETE ON entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_are_kept BEFORE TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_are_kept BEFORE DELETE ON transactions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_are_kept_all BEFORE TRUNCATE ON transactions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- A transaction's state moves on; what it moved, between whom and for which request does not.
CREATE TRIGGER transactions_keep_their_facts BEFORE UPDATE ON transactions
    FOR EACH ROW WHEN (
        (OLD.id, OLD.type, OLD.amount, OLD.fee_amount, OLD.currency, OLD.created_at)
            IS DISTINCT FROM
        (NEW.id, NEW.type, NEW.amount, NEW.fee_amount, NEW.currency, NEW.created_at)
        OR OLD.from_account IS DISTINCT FROM NEW.from_account
        OR OLD.to_account IS DISTINCT FROM NEW.to_account
        OR OLD.original_id IS DISTINCT FROM NEW.original_id
        OR OLD.usage_day IS DISTINCT FROM NEW.usage_day
        OR OLD.scope IS DISTINCT FROM NEW.scope
        OR OLD.request_id IS DISTINCT FROM NEW.request_id
        OR OLD.answer IS DISTINCT FROM NEW.answer
        OR OLD.status IN ('failed', 'refunded')
    ) EXECUTE FUNCTION refuse_change();

-- Whose PIN: a subscriber's, an agent's or a child card's own.
CREATE TABLE pins (
    holder_id bigint PRIMARY KEY,
    key_id text NOT NULL,
    salt bytea NOT NULL,
    verifier bytea NOT NULL,
    failures smallint NOT NULL DEFAULT 0,
    locked_until timestamptz,
    changed_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 80);

CREATE TABLE account_rules (
    kyc_level smallint PRIMARY KEY CHECK (kyc_level BETWEEN 1 AND 3),
    max_balance bigint NOT NULL CHECK (max_balance > 0),
    max_transaction bigint NOT NULL CHECK (max_transaction > 0),
    daily_limit bigint NOT NULL CHECK (daily_limit > 0),
    monthly_limit bigint NOT NULL CHECK (monthly_limit >= daily_limit),
    no_pin_limit bigint NOT NULL CHECK (no_pin_limit >= 0),
    requirements text[] NOT NULL
);

-- One rate for the whole amount: that of the first step whose up_to is not less than it.
CREATE TABLE fee_rules (
    type text NOT NULL,
    up_to bigint CHECK (up_to > 0),         -- null: no end
    rate integer NOT NULL CHECK (rate >= 0),  -- thousandths of a percent
    payer text NOT NULL CHECK (payer IN ('sender', 'receiver')),
    UNIQUE NULLS NOT DISTINCT (type, up_to)
);

CREATE TABLE commission_rates (
    tier smallint PRIMARY KEY CHECK (tier BETWEEN 1 AND 3),
    rate integer NOT NULL CHECK (rate >= 0)   -- thousandths of a percent
);
INSERT INTO commission_rates VALUES (1, 1000), (2, 1500), (3, 2000);
