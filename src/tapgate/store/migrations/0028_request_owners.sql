-- The scope of an idempotency key is the owner of the signing key, no longer the signing key itself.
-- Requests stored before keep their scope, so lookups also read the scopes of the owner's keys from
-- that time. New keys are stored with false; the default also marks keys that a process of the
-- previous release creates while it is still running.
ALTER TABLE hmac_keys ADD COLUMN is_former_scope boolean NOT NULL DEFAULT true;
CREATE INDEX hmac_keys_former_scope
    ON hmac_keys (coalesce(terminal_id, processor_id, partner_id), id) WHERE is_former_scope;

-- The signing keys of a partner, newest first.
CREATE INDEX hmac_keys_partner ON hmac_keys (partner_id, id) WHERE deleted_at IS NULL;
