-- How many and how much, added up while it happens: whoever wants to know does not read every
-- transaction. Each process adds to rows of its own slot, so that none waits for another; what is
-- of interest is always the sum over the slots. Rows of finished times are folded into slot -1.
--
-- Quarters of an hour, because in some time zones a day begins at one.
CREATE TABLE figures (
    quarter timestamptz NOT NULL,           -- of created_at
    type text NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('completed', 'failed', 'under_review')),
    failure_code text,
    slot smallint NOT NULL,
    -- Below zero where another process counted what this one took back: the end of a review.
    count bigint NOT NULL,
    amount numeric NOT NULL,                -- as large as declines of any amount add up to
    fees numeric NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX figures_key ON figures (quarter, type, outcome, failure_code, slot)
    NULLS NOT DISTINCT;
CREATE INDEX figures_unfolded ON figures (quarter) WHERE slot >= 0;

INSERT INTO figures
SELECT date_bin('15 minutes', created_at, '2000-01-01Z'), type,
       CASE WHEN status IN ('failed', 'under_review') THEN status ELSE 'completed' END,
       failure_code, -1, count(*), sum(amount), sum(fee_amount)
FROM transactions GROUP BY 1, 2, 3, 4;

-- How often rows were folded: whoever remembers what the folded ones add up to knows by this number
-- whether that is still so.
CREATE TABLE figures_folded (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    times bigint NOT NULL
);
INSERT INTO figures_folded (times) VALUES (0);

-- When the books were proven, and what came of it.
CREATE TABLE proofs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    proven_at timestamptz NOT NULL,         -- when it began
    seconds double precision NOT NULL,
    transactions bigint NOT NULL,
    entries bigint NOT NULL,
    accounts bigint NOT NULL,
    broken text[] NOT NULL                  -- the claims that do not hold
);
