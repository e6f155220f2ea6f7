-- migration: expand concurrently
-- Failed deliveries of an endpoint, newest first. Among many delivered ones, they were found by
-- reading the whole table.
DROP INDEX CONCURRENTLY IF EXISTS deliveries_failed;
CREATE INDEX CONCURRENTLY deliveries_failed ON deliveries (endpoint_id, id) WHERE status = 'failed';
