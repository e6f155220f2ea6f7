-- migration: expand
-- Why the maker made the request.
ALTER TABLE approvals ADD reason text;
