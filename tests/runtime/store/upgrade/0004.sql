-- What was done; sealed by whoever fills this in, as it was then.
INSERT INTO audit_entries (id, occurred_at, event, actor, resource_type, resource_id, result,
                           changes, ip) VALUES
    (801, '2026-03-01 10:00Z', 'subscriber.registered', '{"type": "api_key", "id": "key_1"}',
     'subscriber', 'sub_201', 'success', '{"phone_number": [null, "+23276000201"]}', '10.0.0.1'),
    (802, '2026-03-01 11:00Z', 'access.denied', '{"type": "admin", "id": "adm_702"}',
     'endpoint', 'POST /api/v1/admin/users', 'denied', '{}', NULL);
