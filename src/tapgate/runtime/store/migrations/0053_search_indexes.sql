-- migration: expand concurrently
-- Beginnings of names, phone numbers and serials: a search as you type reads a few rows of an index,
-- however many rows match. `text_pattern_ops` compares bytes, whatever the collation.
DROP INDEX CONCURRENTLY IF EXISTS subscribers_by_name;
CREATE INDEX CONCURRENTLY subscribers_by_name
    ON subscribers (lower(first_name || ' ' || last_name) text_pattern_ops);
DROP INDEX CONCURRENTLY IF EXISTS subscribers_by_last_name;
CREATE INDEX CONCURRENTLY subscribers_by_last_name
    ON subscribers (lower(last_name || ' ' || first_name) text_pattern_ops);
DROP INDEX CONCURRENTLY IF EXISTS subscribers_by_phone;
CREATE INDEX CONCURRENTLY subscribers_by_phone ON subscribers (phone_number text_pattern_ops);
DROP INDEX CONCURRENTLY IF EXISTS cards_by_serial;
CREATE INDEX CONCURRENTLY cards_by_serial ON cards (upper(serial) text_pattern_ops);
-- What is printed on a receipt. The first column counts periods of 37 hours in the time of the ID:
-- new entries are close together, although codes are random, so payments write few pages of the
-- index. A search looks into every period.
DROP INDEX CONCURRENTLY IF EXISTS transactions_by_approval;
CREATE INDEX CONCURRENTLY transactions_by_approval
    ON transactions ((id >> 49), approval_number(id))
    WHERE type IN ('pos_payment', 'online_payment');
DROP INDEX CONCURRENTLY IF EXISTS transactions_by_reference;
CREATE INDEX CONCURRENTLY transactions_by_reference
    ON transactions ((id >> 49), (context ->> 'transaction_ref'))
    WHERE context ->> 'transaction_ref' IS NOT NULL;
