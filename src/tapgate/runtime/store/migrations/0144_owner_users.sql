-- migration: expand
-- The person or owner whose sums of 24 hours include the request. Null for earlier requests, which
-- count for their maker's person.
ALTER TABLE approvals ADD counted_for text;
-- Who disabled the account. Null: the command line, an identity provider, or before this release.
ALTER TABLE admins ADD disabled_by bigint REFERENCES admins (id);
