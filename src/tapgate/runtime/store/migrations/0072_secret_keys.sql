-- migration: expand
-- Secret keys that data may be sealed or hashed with. A node needs all of them.
CREATE TABLE secret_keys (
    key_id text PRIMARY KEY,                -- fingerprint, as in sealed values
    name text NOT NULL,                     -- ID in TAPGATE_SECRET_KEY
    added_at timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz                  -- since then, no node has used it for new data
);
INSERT INTO secret_keys (key_id, name)
SELECT value, '0' FROM installation WHERE name = 'secret_fingerprint';

-- NULL: the key in `installation`.
ALTER TABLE api_keys ADD secret_key_id text;

-- Own keys of cards that were encoded before keysets had a master key. They were derived from the
-- secret key.
CREATE TABLE card_own_keys (
    card_id bigint PRIMARY KEY REFERENCES cards (id),
    keys bytea NOT NULL                     -- sealed: keys 0, 3 and 4
);

-- Parallel requests with one idempotency key share a row, which counts while one has not failed.
ALTER TABLE guarded_calls ADD requests integer NOT NULL DEFAULT 1;
