-- migration: expand
-- When a signing key last signed an accepted request, as for API keys.
ALTER TABLE hmac_keys ADD COLUMN last_used_at timestamptz;
