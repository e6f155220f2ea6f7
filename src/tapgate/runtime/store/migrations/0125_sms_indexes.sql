-- migration: expand concurrently
DROP INDEX CONCURRENTLY IF EXISTS messenger.outbox_sms_due;
CREATE INDEX CONCURRENTLY outbox_sms_due ON messenger.outbox (sms_at) WHERE sms_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS messenger.outbox_sms_waiting;
CREATE INDEX CONCURRENTLY outbox_sms_waiting ON messenger.outbox (next_attempt_at)
    WHERE status = 'sms_waiting';
