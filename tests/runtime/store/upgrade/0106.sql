INSERT INTO deliveries (event_id, endpoint_id, status, attempts, created_at, ended_at) VALUES
    (3211, 1201, 'cancelled', 1, '2026-03-02 09:00Z', '2026-03-02 09:01Z');
