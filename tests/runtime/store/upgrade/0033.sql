-- A code of the company's own, and transfers that completed a day after they were created.
UPDATE gl_codes SET gl_code = '2110', name = 'E-money in issue' WHERE kind = 'wallet';
INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency, from_account,
                          to_account, created_at, completed_at) VALUES
    (1033, 'transfer', 'completed', 'admin', 20, 0, 'SLE', 23, 25, '2026-03-03 10:00Z',
     '2026-03-04 10:00Z'),
    (1034, 'transfer', 'completed', 'admin', 20, 0, 'SLE', 25, 23, '2026-03-03 10:00Z',
     '2026-03-04 10:00Z');
INSERT INTO entries VALUES (1033, 0, 23, 25, 20), (1034, 0, 25, 23, 20);
INSERT INTO figures VALUES ('2026-03-03 10:00Z', 'transfer', 'completed', NULL, -1, 2, 40, 0);
