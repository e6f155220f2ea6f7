-- migration: expand
-- Attempts of a delivery that failed or were followed by a redelivery, oldest first: number, time,
-- status, duration and error of each. NULL if there are none.
ALTER TABLE deliveries ADD COLUMN attempt_log jsonb;
