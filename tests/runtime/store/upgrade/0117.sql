INSERT INTO recalls VALUES
    (1, 999999999, 21, 22, 500, 300, 'SLE', 'Wrong number', 'decided', 'return',
     'adm_0000000000001', 'Both agreed', 999999998, 'svc_messenger', 'recall-1', '\x01',
     '2026-03-09 09:00Z', '2026-03-10 09:00Z', '2026-03-09 10:00Z');
