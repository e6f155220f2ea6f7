-- Reading what happened: lists of transactions, and account statements.

-- By type, whatever else there is; by state, only those that are not the rule.
CREATE INDEX transactions_type ON transactions (type, id);
CREATE INDEX transactions_status ON transactions (status, id) WHERE status <> 'completed';
-- A card's history is found by its wallet; these are from before it had one.
CREATE INDEX transactions_unlinked ON transactions (card_serial, id) WHERE from_account IS NULL;
CREATE INDEX transactions_to_unlinked ON transactions (to_card_serial, id) WHERE to_account IS NULL;
CREATE INDEX subscribers_restricted ON subscribers (account_id) WHERE restricted;
