-- migration: expand
-- Rows that a batch of the ledger writes, as parameters of one statement. A release that needs other
-- columns adds new types: processes of older releases encode the attributes of these by position.
CREATE TYPE batch_transaction AS (
    id bigint,
    type text,
    status text,
    channel text,
    amount bigint,
    fee_amount bigint,
    from_account bigint,
    to_account bigint,
    from_balance bigint,
    to_balance bigint,
    to_balance_offset bigint,   -- to the merchant's balance after the batch, if to_balance is null
    held bigint,
    card_serial text,
    to_card_serial text,
    original_id bigint,
    usage_day date,
    scope text,
    request_id text,
    fingerprint bytea,
    answer bytea,
    partner_id bigint,
    partner_reference text,
    failure_code text,
    context jsonb
);
CREATE TYPE batch_entry AS (
    transaction_id bigint,
    position smallint,
    debit_account bigint,
    credit_account bigint,
    amount bigint
);
CREATE TYPE batch_account AS (
    id bigint,
    balance bigint,
    held bigint,
    usage_day date,
    day_used bigint,
    month_used bigint
);
CREATE TYPE batch_card AS (
    id bigint,
    usage_day date,
    day_spent bigint,
    day_unpinned bigint,
    key_version smallint,
    last_counter integer
);
CREATE TYPE batch_figure AS (
    quarter timestamptz,
    type text,
    outcome text,
    failure_code text,
    count bigint,
    amount bigint,
    fees bigint
);
