-- migration: expand concurrently
-- Transfers to other books that are not finished, and an owner's support requests.
DROP INDEX CONCURRENTLY IF EXISTS book_transfers_open;
CREATE INDEX CONCURRENTLY book_transfers_open ON book_transfers (id)
    WHERE status IN ('pending', 'stopped');
DROP INDEX CONCURRENTLY IF EXISTS support_requests_by_owner;
CREATE INDEX CONCURRENTLY support_requests_by_owner ON support_requests (owner_id, id)
    WHERE owner_id IS NOT NULL;
