-- migration: expand
-- Admins who handle an alert or the KYC documents of a subscriber. The column has no foreign key,
-- because checking it would read all alerts; admins are never deleted.
ALTER TABLE alerts ADD assignee bigint;

CREATE TABLE kyc_assignments (
    subscriber_id bigint PRIMARY KEY REFERENCES subscribers (id),
    assignee bigint NOT NULL REFERENCES admins (id),
    assigned_at timestamptz NOT NULL
);
CREATE INDEX kyc_assignments_by_assignee ON kyc_assignments (assignee);
