-- Idempotency keys belong to the owner of a signing key, no longer to the signing key itself. Requests
-- stored before keep the id of their key as scope, so that stays the scope of the owner:
--   owner   the requests of the owner are stored under this key's id: its newest key of that time
--   former  requests of the owner may have been stored under this key's id: lookups read it too
--   none    no request is stored under this key's id
-- An owner without an `owner` key stores requests under its own id. The default marks keys that a
-- process of the previous release creates while it is still running.
ALTER TABLE hmac_keys ADD COLUMN request_scope text NOT NULL DEFAULT 'former'
    CHECK (request_scope IN ('owner', 'former', 'none'));
UPDATE hmac_keys SET request_scope = 'owner' WHERE id IN (
    SELECT DISTINCT ON (coalesce(terminal_id, processor_id, partner_id)) id FROM hmac_keys
    ORDER BY coalesce(terminal_id, processor_id, partner_id), deleted_at IS NOT NULL, id DESC);
CREATE INDEX hmac_keys_request_scope
    ON hmac_keys (coalesce(terminal_id, processor_id, partner_id)) WHERE request_scope <> 'none';

-- The signing keys of a partner, newest first.
CREATE INDEX hmac_keys_partner ON hmac_keys (partner_id, id) WHERE deleted_at IS NULL;
