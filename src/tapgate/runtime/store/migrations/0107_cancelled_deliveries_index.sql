-- migration: expand concurrently
-- Cancelled deliveries of an endpoint, newest first, as deliveries_failed for failed ones.
DROP INDEX CONCURRENTLY IF EXISTS deliveries_cancelled;
CREATE INDEX CONCURRENTLY deliveries_cancelled ON deliveries (endpoint_id, id)
    WHERE status = 'cancelled';
