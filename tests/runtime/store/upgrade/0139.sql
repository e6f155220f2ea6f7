INSERT INTO support_requests (id, status, owner_type, owner_id, opened_by, about, created_at,
                              updated_at) VALUES
    (3504, 'open', 'processor', 2, 701, 'txn_06x53bzkm0003', '2026-03-10', '2026-03-10');
