-- migration: expand concurrently
-- The number of cards that stop working when a keyset is retired.
DROP INDEX CONCURRENTLY IF EXISTS cards_keyset;
CREATE INDEX CONCURRENTLY cards_keyset ON cards (keyset_id) WHERE keyset_id IS NOT NULL;
