-- migration: expand
-- Payouts: money that leaves to bank accounts. `payouts_in_transit` has what was requested and not
-- yet paid, `suspense` the bank items that nobody has explained yet.
-- A partition that was attached has a constraint of its own besides the inherited one. The new
-- constraints allow everything that the old ones did, so no row needs to be read.
DO $$
DECLARE
    relation regclass;
BEGIN
    ALTER TABLE transactions DROP CONSTRAINT IF EXISTS transactions_type_check;
    FOR relation IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'transactions'::regclass
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS transactions_type_check', relation);
    END LOOP;
END $$;
ALTER TABLE transactions ADD CONSTRAINT transactions_type_check CHECK (type IN (
    'transfer_p2p', 'transfer', 'agent_cashin', 'agent_cashout', 'agent_fund', 'agent_transfer',
    'commission_payout', 'pos_payment', 'online_payment', 'partner_fund', 'partner_deposit',
    'processor_transfer', 'refund', 'reversal', 'payout', 'payout_return', 'batch_credit',
    'bank_posting')) NOT VALID;
ALTER TABLE accounts DROP CONSTRAINT accounts_kind_check;
ALTER TABLE accounts ADD CONSTRAINT accounts_kind_check CHECK (kind IN (
    'wallet', 'float', 'commission', 'settlement', 'clearing', 'fees', 'commission_expense', 'cash',
    'payouts_in_transit', 'suspense')) NOT VALID;
ALTER TABLE gl_codes DROP CONSTRAINT gl_codes_kind_check;
ALTER TABLE gl_codes ADD CONSTRAINT gl_codes_kind_check CHECK (kind IN (
    'wallet', 'float', 'commission', 'settlement', 'clearing', 'fees', 'commission_expense', 'cash',
    'payouts_in_transit', 'suspense')) NOT VALID;
-- A code that the company already uses is taken, so the next free one is chosen.
INSERT INTO gl_codes
SELECT kind, (SELECT min(code)::text FROM generate_series(first, first + 99) AS code
              WHERE code::text NOT IN (SELECT gl_code FROM gl_codes)), name
FROM (VALUES ('payouts_in_transit', 2600, 'Payouts in transit'),
             ('suspense', 2900, 'Suspense')) AS new (kind, first, name);

CREATE TABLE bank_accounts (
    id bigint PRIMARY KEY,
    owner_type text NOT NULL CHECK (owner_type IN ('processor', 'partner', 'agent', 'platform')),
    owner_id bigint,                        -- null: the platform
    holder_name text NOT NULL,
    bank_code text NOT NULL,
    bank_name text,
    number text NOT NULL,
    currency text NOT NULL,
    status text NOT NULL CHECK (status IN ('unverified', 'verified', 'blocked')),
    block_reason text,
    created_by bigint NOT NULL,
    verified_by bigint,
    verified_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK ((owner_id IS NULL) = (owner_type = 'platform'))
);
CREATE UNIQUE INDEX bank_accounts_active ON bank_accounts (owner_type, owner_id, number)
    NULLS NOT DISTINCT WHERE status <> 'blocked';
CREATE INDEX bank_accounts_owner ON bank_accounts (owner_id, id);

CREATE TABLE payout_runs (
    id bigint PRIMARY KEY,
    owner_type text,
    bank_account_id bigint NOT NULL,        -- the platform's account that pays
    payouts integer NOT NULL,
    total bigint NOT NULL,
    currency text NOT NULL,
    created_by bigint NOT NULL,
    created_at timestamptz NOT NULL,
    scope text,                             -- whose request_id it is
    request_id text,
    fingerprint bytea,
    debtor jsonb NOT NULL,                  -- as in the bank file, which never changes
    UNIQUE (scope, request_id)
);

CREATE TABLE payouts (
    id bigint PRIMARY KEY,
    owner_type text NOT NULL CHECK (owner_type IN ('processor', 'partner', 'agent')),
    owner_id bigint NOT NULL,
    account_id bigint NOT NULL,             -- the owner's account that was debited
    bank_account_id bigint NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    fee_amount bigint NOT NULL CHECK (fee_amount >= 0),
    currency text NOT NULL,
    status text NOT NULL
        CHECK (status IN ('requested', 'submitted', 'paid', 'returned', 'cancelled')),
    reference text NOT NULL UNIQUE,
    run_id bigint,
    transaction_id bigint NOT NULL UNIQUE,
    bank_reference text,
    return_reason text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX payouts_requested ON payouts (id) WHERE status = 'requested';
CREATE INDEX payouts_submitted ON payouts (id) WHERE status = 'submitted';
CREATE INDEX payouts_owner ON payouts (owner_id, id);
CREATE INDEX payouts_run ON payouts (run_id, id);

CREATE TABLE payout_schedules (
    processor_id bigint PRIMARY KEY,
    interval text NOT NULL CHECK (interval IN ('manual', 'daily', 'weekly')),
    minimum bigint NOT NULL CHECK (minimum >= 0),
    reserve_percent smallint NOT NULL CHECK (reserve_percent BETWEEN 0 AND 100),
    updated_by bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    last_day date                           -- the last day whose close requested a payout
);
