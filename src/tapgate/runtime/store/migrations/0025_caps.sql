-- Caps on what a caller can create without limit.

-- One open alert per type and key: a repeated support request raises `occurrences`.
ALTER TABLE alerts ADD COLUMN open_key text;
UPDATE alerts SET open_key = latest.asked_by
FROM (SELECT DISTINCT ON (details ->> 'asked_by') id, details ->> 'asked_by' AS asked_by
      FROM alerts
      WHERE alert_type = 'SUPPORT_REQUEST' AND status IN ('open', 'investigating') AND NOT review
        AND details ->> 'asked_by' LIKE '+%'
      ORDER BY details ->> 'asked_by', id DESC) AS latest
WHERE alerts.id = latest.id;
CREATE UNIQUE INDEX alerts_open_key ON alerts (alert_type, open_key)
    WHERE status IN ('open', 'investigating') AND NOT review AND open_key IS NOT NULL;

-- When a KYC decision covered the document; null: it still waits for one.
ALTER TABLE kyc_documents ADD COLUMN decided_at timestamptz;
UPDATE kyc_documents SET decided_at = s.updated_at
FROM subscribers s WHERE s.id = subscriber_id AND s.kyc_status IN ('VERIFIED', 'REJECTED');
CREATE INDEX kyc_documents_undecided ON kyc_documents (subscriber_id, document_type)
    WHERE decided_at IS NULL;

-- When one-time codes were sent to a phone number within the last hour, by any route of the gateway
-- or the messenger.
CREATE TABLE one_time_code_sends (
    phone_number text PRIMARY KEY,
    sent_at timestamptz[] NOT NULL
);
CREATE INDEX one_time_code_sends_by_age
    ON one_time_code_sends ((sent_at[cardinality(sent_at)]));
