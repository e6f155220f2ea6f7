-- migration: expand concurrently
DROP INDEX CONCURRENTLY IF EXISTS card_taps_at;
CREATE INDEX CONCURRENTLY card_taps_at ON card_taps (at);
-- Cards that a processor named with proofs that name no card.
DROP INDEX CONCURRENTLY IF EXISTS card_taps_unnamed;
CREATE INDEX CONCURRENTLY card_taps_unnamed ON card_taps (processor_id, at) WHERE counter IS NULL;
