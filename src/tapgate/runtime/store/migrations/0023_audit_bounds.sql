-- The audit log is append-only, so what callers can write to it without succeeding is bounded: per
-- source and hour a number of entries of their own, then one entry per kind with a count.

-- How much of a source's hour is used up.
CREATE TABLE audit_budgets (
    window_start timestamptz NOT NULL,
    source text NOT NULL,
    used integer NOT NULL,
    PRIMARY KEY (window_start, source)
);

-- Refusals that are only counted; each row becomes an entry when its hour is over.
CREATE TABLE audit_repeats (
    window_start timestamptz NOT NULL,
    kind bytea NOT NULL,                    -- digest of what the occurrences have in common
    facts jsonb NOT NULL,
    occurrences bigint NOT NULL,
    first_at timestamptz(3) NOT NULL,
    last_at timestamptz(3) NOT NULL,
    PRIMARY KEY (window_start, kind)
);

-- Up to where the chain was verified, authenticated with a key that is not in the database.
CREATE TABLE audit_checkpoint (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    sequence bigint NOT NULL,
    hash bytea NOT NULL,
    entries bigint NOT NULL,
    mac bytea NOT NULL,
    verified_at timestamptz NOT NULL
);
