-- The messenger's memory. In a schema of its own: the gateway never looks into it.
CREATE SCHEMA messenger;

-- Whom the messenger has met. An address is a phone number, or `user:` and an id of the channel's.
CREATE TABLE messenger.people (
    address text PRIMARY KEY,
    phone text,                             -- E.164; for a `user:` address once it is proved
    language text CHECK (language IN ('en', 'fr')),
    trusted boolean NOT NULL DEFAULT true,
    updated_at timestamptz NOT NULL
);

CREATE TABLE messenger.recipients (
    address text NOT NULL,
    card_serial text NOT NULL,
    name text NOT NULL,
    saved_at timestamptz NOT NULL,
    PRIMARY KEY (address, card_serial)
);

-- One conversation per address. Whoever works on it holds its lease, and nobody else writes to it;
-- a lease that ran out may be taken over.
CREATE TABLE messenger.conversations (
    address text PRIMARY KEY,
    state jsonb,                            -- never holds a PIN
    heard_until bigint NOT NULL DEFAULT 0,  -- when the latest message handled was sent, unix seconds
    expires_at timestamptz,                 -- null: not begun
    lease bigint,
    leased_until timestamptz
);
CREATE INDEX conversations_unexpired ON messenger.conversations (expires_at)
    WHERE expires_at IS NOT NULL;

-- What the channel delivered: stored before it is acknowledged, kept so that a twin is known.
CREATE TABLE messenger.received (
    id bigint PRIMARY KEY,
    message_id text NOT NULL UNIQUE,
    address text NOT NULL,
    sent_at bigint NOT NULL,                -- unix seconds, by the provider's clock
    content jsonb,                          -- never holds a PIN; removed once handled
    withheld boolean NOT NULL DEFAULT false,
    -- The process that took it in, and alone knows what was withheld, comes first.
    reserved_for bigint NOT NULL,
    reserved_until timestamptz NOT NULL,
    status text NOT NULL CHECK (status IN ('waiting', 'handled', 'throttled', 'failed')),
    attempts smallint NOT NULL DEFAULT 0,
    received_at timestamptz NOT NULL
);
CREATE INDEX received_waiting ON messenger.received (address, sent_at, id)
    WHERE status = 'waiting';
CREATE INDEX received_by_age ON messenger.received (received_at);

-- What goes out, in order per recipient.
CREATE TABLE messenger.outbox (
    id bigint PRIMARY KEY,
    address text NOT NULL,
    content bytea,                          -- sealed: balances, names, one-time codes
    key text UNIQUE,                        -- a repeated request of an internal service is known by it
    status text NOT NULL DEFAULT 'waiting'
        CHECK (status IN ('waiting', 'sent', 'refused')),
    problem text,                           -- the provider's error code
    attempts smallint NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    channel_message_id text
);
CREATE INDEX outbox_waiting ON messenger.outbox (address, id) WHERE status = 'waiting';
CREATE INDEX outbox_of ON messenger.outbox (address, id DESC);
CREATE INDEX outbox_by_age ON messenger.outbox (created_at);

-- How many messages an address has sent in the minute that began then.
CREATE TABLE messenger.rates (
    address text PRIMARY KEY,
    since timestamptz NOT NULL,
    taken integer NOT NULL,
    told boolean NOT NULL DEFAULT false     -- one answer that asks to slow down
);

-- A form for a PIN that was sent to somebody.
CREATE TABLE messenger.forms (
    token_hash bytea PRIMARY KEY,
    address text NOT NULL,
    form text NOT NULL CHECK (form IN ('pin', 'new_pin', 'change_pin')),
    operation text NOT NULL,
    language text NOT NULL,
    text text NOT NULL,                     -- what it asks for: amount and masked name
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX forms_unused ON messenger.forms (address, operation) WHERE used_at IS NULL;
CREATE INDEX forms_by_age ON messenger.forms (expires_at);

-- One-time codes that prove a phone to be somebody's who does not show their number.
CREATE TABLE messenger.codes (
    address text PRIMARY KEY,
    phone text NOT NULL,
    code_hash bytea NOT NULL,
    tries_left smallint NOT NULL,
    expires_at timestamptz NOT NULL
);
