-- migration: expand
-- Deliveries that were in flight when their endpoint was disabled end as cancelled.
ALTER TABLE deliveries DROP CONSTRAINT deliveries_status_check;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_status_check
    CHECK (status IN ('pending', 'delivered', 'failed', 'cancelled')) NOT VALID;
