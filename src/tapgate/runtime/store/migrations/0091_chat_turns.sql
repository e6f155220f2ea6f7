-- migration: expand
-- Turns of subscribers in the chat: what kind of message, which command and how it ended. They have
-- no text, amount or recipient.
CREATE TABLE chat_turns (
    id bigint PRIMARY KEY,                      -- has the time of the turn
    subscriber_id bigint NOT NULL,
    channel text NOT NULL,
    input text NOT NULL,
    command text CHECK (command ~ '^[a-z_]{1,40}$'),
    outcome text NOT NULL,
    error_code text CHECK (error_code ~ '^[A-Z_]{1,40}$'),
    replies smallint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
CREATE INDEX chat_turns_subscriber ON chat_turns (subscriber_id, id);

-- Turns that the messenger has not reported to the gateway yet.
CREATE TABLE messenger.turns (
    id bigint PRIMARY KEY,
    phone text NOT NULL,
    channel text NOT NULL,
    input text NOT NULL,
    command text CHECK (command ~ '^[a-z_]{1,40}$'),
    outcome text NOT NULL,
    error_code text CHECK (error_code ~ '^[A-Z_]{1,40}$'),
    replies smallint NOT NULL,
    ended_at timestamptz NOT NULL,
    report_at timestamptz NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX turns_to_report ON messenger.turns (report_at);
CREATE INDEX turns_by_age ON messenger.turns (ended_at);
