UPDATE webhook_endpoints SET failures = 3, backoff_step = 1, backoff_until = '2026-03-10'
WHERE id = (SELECT min(id) FROM webhook_endpoints);
INSERT INTO webhook_redeliveries
SELECT min(id), '2026-03-01', '2026-03-02', 'dead', 1, 2, true, '2026-03-10' FROM webhook_endpoints;
