UPDATE hmac_keys SET last_used_at = '2026-03-08 09:00Z' WHERE id = 731;
