-- Wrong PINs of a wallet, its holder's and its child cards', for the rules that count them.
CREATE TABLE pin_failures (
    account_id bigint NOT NULL,
    failed_at timestamptz NOT NULL
);
CREATE INDEX pin_failures_account ON pin_failures (account_id, failed_at);
CREATE INDEX pin_failures_oldest ON pin_failures (failed_at);
