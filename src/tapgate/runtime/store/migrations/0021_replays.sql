-- How often the request of a transaction came again and was answered from what is kept. For people
-- who look into a complaint; no money depends on it. No foreign key, as on all that payments write.
CREATE TABLE replays (
    transaction_id bigint PRIMARY KEY,
    count bigint NOT NULL CHECK (count > 0),
    last_at timestamptz NOT NULL
) WITH (fillfactor = 80);

-- What was declined for one reason, newest first.
CREATE INDEX transactions_failure ON transactions (failure_code, id)
    WHERE failure_code IS NOT NULL;
