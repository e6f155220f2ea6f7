-- Ranges of IDs whose transactions and entries were verified, without gaps. The MAC of a range covers
-- the range before, and its key is not in the database.
CREATE TABLE verified_ranges (
    first_id bigint NOT NULL UNIQUE,
    end_id bigint PRIMARY KEY CHECK (end_id > first_id),
    transactions bigint NOT NULL,
    entries bigint NOT NULL,
    digest bytea NOT NULL,
    mac bytea NOT NULL,
    verified_at timestamptz NOT NULL
);
-- Sums of the entries of these ranges by account, with the MAC of all sums in the last range.
CREATE TABLE verified_sums (
    account_id bigint PRIMARY KEY,
    amount numeric NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE verified_sums_seal (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    end_id bigint NOT NULL,
    mac bytea NOT NULL
);
