-- Who holds money, and the cards that reach it. Name, state and KYC level are the account's.

-- Every three characters in a row: by these an index finds what is in the middle of a word.
CREATE FUNCTION trigrams(words text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT DISTINCT substr(words, start, 3)
             FROM generate_series(1, length(words) - 2) AS start);

CREATE TABLE subscribers (
    id bigint PRIMARY KEY,
    account_id bigint NOT NULL UNIQUE REFERENCES accounts (id),
    phone_number text NOT NULL,
    first_name text NOT NULL,
    last_name text NOT NULL,
    email text,
    date_of_birth date,
    address text,
    id_type text CHECK (id_type IN ('NATIONAL_ID', 'PASSPORT', 'DRIVERS_LICENSE')),
    id_number text,
    category text NOT NULL DEFAULT 'standard' CHECK (category IN ('standard', 'vip', 'corporate')),
    kyc_status text NOT NULL DEFAULT 'NONE'
        CHECK (kyc_status IN ('NONE', 'PENDING', 'VERIFIED', 'REJECTED')),
    restricted boolean NOT NULL DEFAULT false,
    search_text text NOT NULL GENERATED ALWAYS AS (lower(
        first_name || ' ' || last_name || ' ' || phone_number || coalesce(' ' || id_number, '')
    )) STORED,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT one_subscriber_per_phone UNIQUE (phone_number),
    CONSTRAINT one_subscriber_per_id_number UNIQUE (id_number)
);
CREATE INDEX subscribers_search ON subscribers USING gin (trigrams(search_text));

CREATE TABLE cards (
    id bigint PRIMARY KEY,
    serial text NOT NULL UNIQUE,
    uid text UNIQUE,                        -- the NFC UID or MAC, upper case, ':' between
    type text CHECK (type IN ('PARENT', 'CHILD')),
    status text NOT NULL CHECK (status IN ('UNASSIGNED', 'ACTIVE', 'BLOCKED', 'LOST')),
    status_reason text,
    subscriber_id bigint REFERENCES subscribers (id),
    account_id bigint REFERENCES accounts (id),   -- the wallet it spends; never changes once set
    pin_holder_id bigint,                   -- the subscriber, or the card itself for a child
    holder_name text,
    relationship text,
    daily_limit bigint CHECK (daily_limit > 0),
    usage_day date,                         -- the day that day_spent and day_unpinned count
    day_spent bigint NOT NULL DEFAULT 0 CHECK (day_spent >= 0),
    day_unpinned bigint NOT NULL DEFAULT 0 CHECK (day_unpinned >= 0),
    expires_at timestamptz,
    linked_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CHECK ((status = 'UNASSIGNED') = (account_id IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX cards_subscriber ON cards (subscriber_id);

CREATE TABLE agents (
    id bigint PRIMARY KEY,
    account_id bigint NOT NULL UNIQUE REFERENCES accounts (id),
    commission_account_id bigint NOT NULL UNIQUE REFERENCES accounts (id),
    agent_type text NOT NULL CHECK (agent_type IN ('super_agent', 'sub_agent')),
    parent_agent_id bigint REFERENCES agents (id),
    business_name text,
    phone_number text NOT NULL UNIQUE,
    email text,
    address text,
    commission_tier smallint NOT NULL DEFAULT 1 REFERENCES commission_rates (tier),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE processors (
    id bigint PRIMARY KEY,
    account_id bigint NOT NULL UNIQUE REFERENCES accounts (id),
    phone_number text NOT NULL,
    email text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE terminals (
    id bigint PRIMARY KEY,
    processor_id bigint NOT NULL REFERENCES processors (id),
    name text NOT NULL,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'blocked')),
    last_seen_at timestamptz,
    created_at timestamptz NOT NULL
);
CREATE INDEX terminals_processor ON terminals (processor_id);

CREATE TABLE partners (
    id bigint PRIMARY KEY,
    account_id bigint NOT NULL UNIQUE REFERENCES accounts (id),
    webhook_secret bytea NOT NULL,          -- sealed by the vault
    created_at timestamptz NOT NULL
);
