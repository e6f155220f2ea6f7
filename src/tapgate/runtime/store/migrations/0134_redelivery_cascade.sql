-- migration: expand
-- Retention deletes the rows of endpoints that were deleted long ago, and their redeliveries with
-- them. The table is new and has few rows.
ALTER TABLE webhook_redeliveries DROP CONSTRAINT webhook_redeliveries_endpoint_id_fkey;
ALTER TABLE webhook_redeliveries ADD CONSTRAINT webhook_redeliveries_endpoint_id_fkey
    FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints (id) ON DELETE CASCADE NOT VALID;
