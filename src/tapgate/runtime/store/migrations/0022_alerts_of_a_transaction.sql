-- What was noticed about one transaction.
CREATE INDEX alerts_transaction ON alerts (transaction_id, id) WHERE transaction_id IS NOT NULL;
