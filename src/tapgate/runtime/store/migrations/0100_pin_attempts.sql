-- migration: expand
-- PIN attempts per credential and minute. A node writes them when a PIN is wrong, so that the limit
-- on wrong PINs also holds for a credential that uses several nodes.
CREATE TABLE pin_attempts (
    credential text NOT NULL,
    minute bigint NOT NULL,  -- since the epoch
    attempts integer NOT NULL,
    wrong integer NOT NULL
);
CREATE INDEX pin_attempts_credential ON pin_attempts (credential, minute);
CREATE INDEX pin_attempts_oldest ON pin_attempts (minute);
ALTER TABLE pin_attempts SET
    (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
