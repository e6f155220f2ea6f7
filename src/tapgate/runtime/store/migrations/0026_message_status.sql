-- What the messaging provider reports about a message. A report can arrive before the sender has
-- recorded the provider's id, so it is kept by that id and joined later.
CREATE TABLE messenger.statuses (
    channel_message_id text PRIMARY KEY,
    outbox_id bigint,                       -- null until the sender has recorded the id
    status text NOT NULL CHECK (status IN ('sent', 'delivered', 'read', 'failed')),
    error_code text,
    updated_at timestamptz NOT NULL
);
CREATE INDEX statuses_of ON messenger.statuses (outbox_id) WHERE outbox_id IS NOT NULL;
CREATE INDEX statuses_by_age ON messenger.statuses (updated_at);

-- When the status of a gateway's message is due to be reported to it; null: not due.
ALTER TABLE messenger.outbox ADD COLUMN report_at timestamptz;
CREATE INDEX outbox_to_report ON messenger.outbox (report_at) WHERE report_at IS NOT NULL;

-- Conversations whose first turn was never saved.
CREATE INDEX conversations_unsaved ON messenger.conversations (leased_until)
    WHERE expires_at IS NULL;
CREATE INDEX forms_of ON messenger.forms (address, expires_at);
CREATE INDEX people_by_age ON messenger.people (updated_at);

-- What became of a message after it was handed to the messenger.
ALTER TABLE messages
    ADD COLUMN delivery text CHECK (delivery IN ('sent', 'delivered', 'read', 'failed')),
    ADD COLUMN delivery_error text,         -- the provider's error code
    ADD COLUMN delivery_at timestamptz;
-- Handed over by an earlier version: nothing further is known about them.
UPDATE messages SET delivery = 'sent' WHERE status = 'delivered';
CREATE INDEX messages_of ON messages (recipient, id DESC);

-- When a subscriber's phone number last changed; earlier messages went to its previous owner.
ALTER TABLE subscribers ADD COLUMN phone_number_changed_at timestamptz;
