UPDATE api_keys SET rotated_at = '2026-03-08 09:00Z', rotated_by = '{702}' WHERE id = 721;
UPDATE hmac_keys SET created_by = 701 WHERE id = 731;
UPDATE webhook_endpoints SET created_by = 701, rotated_by = 702, rotated_at = '2026-03-08 09:00Z'
WHERE id = (SELECT min(id) FROM webhook_endpoints);
UPDATE sessions SET sealed_id_token = '\x05' WHERE id = 711;
