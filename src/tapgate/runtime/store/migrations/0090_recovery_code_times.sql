-- migration: expand
-- A rotation of the secret key must know which recovery codes an old key has hashed. Null for codes
-- of earlier releases, which count as old.
ALTER TABLE admin_recovery_codes ADD created_at timestamptz;
