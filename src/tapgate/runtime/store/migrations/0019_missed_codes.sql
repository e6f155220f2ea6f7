-- How often a question was answered with a wrong code since that moment, over all its codes: three
-- tries each, and as many codes as one likes, would find one in the end.
ALTER TABLE one_time_codes
    ADD COLUMN missed smallint NOT NULL DEFAULT 0,
    ADD COLUMN missed_since timestamptz;
