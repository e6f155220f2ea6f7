-- Notices also report the outcome of a review to both parties, and a low float to an agent.
-- `subscriber_id` keeps its name, but may also be the ID of an agent.
ALTER TABLE notices
    DROP CONSTRAINT notices_kind_check,
    ADD CONSTRAINT notices_kind_check CHECK (kind IN (
        'money_received', 'payment_made', 'payment_released', 'payment_rejected', 'float_low')),
    DROP CONSTRAINT notices_pkey,
    ADD PRIMARY KEY (transaction_id, kind, subscriber_id);
