-- migration: expand
-- Messages go out as SMS at `sms_at`, unless they were delivered in the chat before. Then they
-- leave the chat queue for the SMS queue, whose rows have the status `sms_waiting`.
ALTER TABLE messenger.outbox
    ADD COLUMN IF NOT EXISTS channel text NOT NULL DEFAULT 'chat',
    ADD COLUMN IF NOT EXISTS sms_at timestamptz,
    DROP CONSTRAINT IF EXISTS outbox_status_check,
    DROP CONSTRAINT IF EXISTS outbox_channel_check;
ALTER TABLE messenger.outbox
    ADD CONSTRAINT outbox_status_check
        CHECK (status IN ('waiting', 'sent', 'refused', 'sms_waiting')) NOT VALID,
    ADD CONSTRAINT outbox_channel_check CHECK (channel IN ('chat', 'sms')) NOT VALID;
-- On which channel the messenger sent a message, as it has reported.
ALTER TABLE messages
    ADD COLUMN IF NOT EXISTS channel text NOT NULL DEFAULT 'chat',
    DROP CONSTRAINT IF EXISTS messages_channel_check;
ALTER TABLE messages
    ADD CONSTRAINT messages_channel_check CHECK (channel IN ('chat', 'sms')) NOT VALID;
