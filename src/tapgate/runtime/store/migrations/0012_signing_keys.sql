-- The signing keys of a processor, newest first, and the newest of each terminal.
CREATE INDEX hmac_keys_processor ON hmac_keys (processor_id, id) WHERE deleted_at IS NULL;
CREATE INDEX hmac_keys_terminal ON hmac_keys (terminal_id, id) WHERE deleted_at IS NULL;
