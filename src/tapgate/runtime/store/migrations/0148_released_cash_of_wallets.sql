-- migration: expand concurrently
-- Released cash-ins and cash-outs of a wallet, at any agent of a family.
DROP INDEX CONCURRENTLY IF EXISTS released_cash_wallet;
CREATE INDEX CONCURRENTLY released_cash_wallet ON released_cash
    ((CASE type WHEN 'agent_cashin' THEN to_account ELSE from_account END), completed_at);
