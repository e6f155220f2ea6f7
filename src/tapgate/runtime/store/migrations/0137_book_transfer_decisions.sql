-- migration: expand
-- A transfer that the other book keeps refusing, without a final response, stops and waits for a
-- decision. A return is requested by staff and executed when the other book has confirmed it.
ALTER TABLE book_transfers
    ADD refused_since timestamptz,          -- first refusal that was not final
    ADD return_requested_at timestamptz,
    DROP CONSTRAINT book_transfers_status_check;
ALTER TABLE book_transfers ADD CONSTRAINT book_transfers_status_check
    CHECK (status IN ('pending', 'stopped', 'delivered', 'returned', 'canceled')) NOT VALID;
