-- migration: expand
-- Cards that sign every tap. Existing cards do not, so their authenticity is 'none'.
CREATE TABLE card_keysets (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    version integer NOT NULL,               -- counts the keysets of the same name
    kcv text NOT NULL,
    keys bytea NOT NULL,                    -- sealed: the meta read key, then the file read key
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'retired')),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (name, version)
);

-- The constraints are not validated, because that would read all cards. They hold for all rows,
-- whose new columns are empty.
ALTER TABLE cards
    ADD authenticity text NOT NULL DEFAULT 'none',
    ADD keyset_id bigint REFERENCES card_keysets (id),
    ADD key_version smallint,
    ADD last_counter integer,               -- of the last tap that was consumed with these keys
    -- The keys that were issued last. They replace the others when a tap confirms them.
    ADD pending_keyset_id bigint REFERENCES card_keysets (id),
    ADD pending_key_version smallint,
    ADD CONSTRAINT cards_keys CHECK (
        authenticity = CASE WHEN keyset_id IS NULL THEN 'none' ELSE 'sun' END
        AND (keyset_id IS NULL) = (key_version IS NULL)
        AND (pending_keyset_id IS NULL) = (pending_key_version IS NULL)
        AND (key_version BETWEEN 1 AND 255) IS NOT FALSE
        AND (pending_key_version BETWEEN 1 AND 255) IS NOT FALSE
    ) NOT VALID;

-- Taps that no transaction records: rejected ones, and those that confirmed keys. At most 100 per
-- card. Other accepted taps are in the context of their transactions.
CREATE TABLE card_taps (
    card_id bigint NOT NULL REFERENCES cards (id),
    id bigint NOT NULL,
    at timestamptz NOT NULL,
    counter integer,                        -- null: the proof could not be decrypted
    terminal_id bigint,
    result text NOT NULL CHECK (result IN ('accepted', 'used', 'not_genuine')),
    PRIMARY KEY (card_id, id)
);

-- A table of its own, because the previous release reads all columns of account_rules.
CREATE TABLE proof_rules (
    kyc_level smallint PRIMARY KEY,
    proof_required_above bigint NOT NULL CHECK (proof_required_above >= 0)
);
