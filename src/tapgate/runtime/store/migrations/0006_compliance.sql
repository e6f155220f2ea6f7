-- What is watched, and what was noticed.
CREATE TABLE compliance_rules (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    type text NOT NULL CHECK (type IN ('AMOUNT_THRESHOLD', 'TRANSACTION_COUNT',
                                       'CUMULATIVE_AMOUNT', 'PIN_FAILURES')),
    transaction_types text[] NOT NULL,
    threshold bigint NOT NULL CHECK (threshold >= 0),   -- minor units, or a count
    window_seconds integer CHECK (window_seconds > 0),
    action text NOT NULL CHECK (action IN ('alert', 'review', 'block')),
    severity text NOT NULL CHECK (severity IN ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'inactive')),
    CHECK ((type = 'AMOUNT_THRESHOLD') = (window_seconds IS NULL))
);

CREATE TABLE alerts (
    id bigint PRIMARY KEY,
    subscriber_id bigint REFERENCES subscribers (id),
    transaction_id bigint,
    rule_id bigint REFERENCES compliance_rules (id),
    alert_type text NOT NULL,
    severity text NOT NULL DEFAULT 'MEDIUM'
        CHECK (severity IN ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
    status text NOT NULL DEFAULT 'open'
        CHECK (status IN ('open', 'investigating', 'resolved', 'false_positive')),
    review boolean NOT NULL DEFAULT false,  -- funds are held until it is resolved
    details jsonb NOT NULL,
    occurrences integer NOT NULL DEFAULT 1,
    resolution_notes text,
    resolved_by bigint REFERENCES admins (id),
    resolved_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
-- One open alert per rule and subject; a review has one per transaction.
CREATE UNIQUE INDEX alerts_open ON alerts (rule_id, subscriber_id)
    WHERE status IN ('open', 'investigating') AND NOT review;
CREATE UNIQUE INDEX alerts_review ON alerts (transaction_id) WHERE review;
CREATE INDEX alerts_subscriber ON alerts (subscriber_id, id);
