-- Who is to be told on the phone of a transaction that completed. Written in the batch that carries
-- it, without a foreign key like everything a payment writes; turned into a message soon after.
CREATE TABLE notices (
    transaction_id bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('money_received', 'payment_made')),
    subscriber_id bigint NOT NULL,
    PRIMARY KEY (transaction_id, kind)      -- one receives, one pays, each is told once
);
