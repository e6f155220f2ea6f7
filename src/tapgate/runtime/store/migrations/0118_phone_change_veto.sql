-- migration: expand
-- Replaced phone numbers and who made each change: an admin, a key, or maker and approvers. A
-- number can object for 24 hours. `cleared_at` is when someone else unblocked the wallet.
CREATE TABLE phone_changes (
    id bigint PRIMARY KEY,
    subscriber_id bigint NOT NULL REFERENCES subscribers,
    old_number text NOT NULL,
    new_number text NOT NULL,
    makers text[] NOT NULL,
    changed_at timestamptz NOT NULL,
    vetoed_at timestamptz,
    cleared_at timestamptz
);
CREATE INDEX phone_changes_old_number ON phone_changes (old_number, changed_at);
CREATE INDEX phone_changes_subscriber ON phone_changes (subscriber_id, changed_at);
ALTER TABLE support_requests
    ADD priority text NOT NULL DEFAULT 'normal',
    ADD CONSTRAINT support_requests_priority_check
        CHECK (priority IN ('normal', 'urgent')) NOT VALID;
ALTER TABLE subscribers
    ADD messages text NOT NULL DEFAULT 'all',
    ADD CONSTRAINT subscribers_messages_check CHECK (messages IN ('all', 'essential')) NOT VALID;
