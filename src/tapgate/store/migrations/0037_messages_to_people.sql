-- Notices also report a low float to an agent, and the outcome of a review to both parties.
ALTER TABLE notices RENAME COLUMN subscriber_id TO holder_id;   -- a subscriber or an agent
ALTER TABLE notices
    DROP CONSTRAINT notices_kind_check,
    ADD CONSTRAINT notices_kind_check CHECK (kind IN (
        'money_received', 'payment_made', 'payment_released', 'payment_rejected', 'float_low')),
    DROP CONSTRAINT notices_pkey,
    ADD PRIMARY KEY (transaction_id, kind, holder_id);
