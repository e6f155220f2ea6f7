-- Deliveries are claimed endpoint by endpoint, may be asked for again, and are kept for a while
-- after they have ended.
ALTER TABLE deliveries
    ALTER attempts TYPE integer,
    ADD attempts_before integer NOT NULL DEFAULT 0,  -- those before it was last asked for
    ADD ended_at timestamptz;
UPDATE deliveries SET ended_at = created_at WHERE status <> 'pending';
ALTER TABLE deliveries ADD CHECK ((status = 'pending') = (ended_at IS NULL));

DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (endpoint_id, next_attempt_at) WHERE status = 'pending';
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE status <> 'pending';
CREATE INDEX messages_ended ON messages (expires_at) WHERE status <> 'pending';
