-- migration: expand
-- Subscribers whose phone number must be compared with the other books. The row is deleted when no
-- other book has the number. A conflict is compared again until it is solved.
CREATE TABLE number_checks (
    id bigint PRIMARY KEY,                  -- the subscriber
    status text NOT NULL CHECK (status IN ('pending', 'conflict')),
    book text,                              -- the other book that has the number
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX number_checks_due ON number_checks (next_attempt_at);
