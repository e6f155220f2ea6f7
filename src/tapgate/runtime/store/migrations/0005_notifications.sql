-- Messages to people's phones, on their way to the messenger.
CREATE TABLE messages (
    id bigint PRIMARY KEY,
    recipient text NOT NULL,                -- E.164
    template text NOT NULL,
    language text NOT NULL,
    parameters bytea,                       -- sealed by the vault; removed once delivered or expired
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'expired')),
    attempts smallint NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    CHECK ((status = 'pending') = (parameters IS NOT NULL))
);
CREATE INDEX messages_due ON messages (next_attempt_at) WHERE status = 'pending';
CREATE INDEX messages_expiring ON messages (expires_at) WHERE status = 'pending';
