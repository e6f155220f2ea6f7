-- Endpoints in every state, one of them within the grace period of a rotation.
INSERT INTO webhook_endpoints (id, url, events, secret, created_at, status, status_reason,
                               status_changed_at, failing_since, last_failure_at,
                               previous_secret, previous_secret_expires_at) VALUES
    (3201, 'https://shop.example.com/active', '{*}', 'sealed', '2026-03-01', 'active', NULL,
     '2026-03-01', '2026-03-02', '2026-03-02', 'sealed before', '2026-03-03'),
    (3202, 'https://shop.example.com/paused', '{*}', 'sealed', '2026-03-01', 'paused',
     'Paused by an administrator', '2026-03-02', NULL, NULL, NULL, NULL),
    (3203, 'https://shop.example.com/gone', '{*}', 'sealed', '2026-03-01', 'disabled',
     'The endpoint responded with 410 Gone', '2026-03-02', NULL, NULL, NULL, NULL);
INSERT INTO events VALUES (3211, 'card.blocked', NULL, '{"serial": "CARD-4"}', '2026-03-02');
INSERT INTO deliveries (event_id, endpoint_id, status, attempts, last_status, next_attempt_at,
                        created_at, ended_at, duration_ms, response) VALUES
    (3211, 3201, 'delivered', 1, 200, NULL, '2026-03-02', '2026-03-02', 41, 'ok'),
    (3211, 3202, 'pending', 0, NULL, '2026-03-02', '2026-03-02', NULL, NULL, NULL),
    (3211, 3203, 'failed', 1, 410, NULL, '2026-03-02', '2026-03-02', 12, NULL);
