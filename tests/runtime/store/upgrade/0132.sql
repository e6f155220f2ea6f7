UPDATE webhook_endpoints SET owner_type = 'processor', owner_id = 401
WHERE id = (SELECT min(id) FROM webhook_endpoints);
UPDATE request_logs SET owner_id = 401 WHERE id = (SELECT min(id) FROM request_logs);
UPDATE statements SET owner_id = 401 WHERE id = (SELECT min(id) FROM statements);
