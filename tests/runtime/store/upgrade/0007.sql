-- Every state that a delivery could be in, before it was known when it had ended.
INSERT INTO webhook_endpoints VALUES
    (1201, 'https://shop.example.com/hook', '{*}', 'sealed', '2026-03-01', NULL),
    (1202, 'https://old.example.com/hook', '{transaction.completed}', 'sealed', '2026-03-01',
     '2026-03-02');
INSERT INTO events VALUES (1211, 'transaction.completed', 1003, NULL, '2026-03-02'),
                          (1212, 'card.blocked', NULL, '{"serial": "CARD-4"}', '2026-03-02');
INSERT INTO deliveries (event_id, endpoint_id, status, attempts, last_status, next_attempt_at,
                        created_at) VALUES
    (1211, 1201, 'delivered', 1, 200, NULL, '2026-03-02'),
    (1211, 1202, 'failed', 12, 410, NULL, '2026-03-02'),
    (1212, 1201, 'pending', 3, 500, '2026-03-03', '2026-03-02');
