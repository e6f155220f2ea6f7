INSERT INTO bank_accounts VALUES
    (1191, 'processor', 401, 'Shop Ltd', 'SLCBSLFR', 'Sample Bank', '0011223344', 'SLE', 'verified',
     NULL, 701, 702, '2026-03-09', '2026-03-08', '2026-03-09'),
    (1192, 'platform', NULL, 'Tapgate Ltd', 'SLCBSLFR', NULL, '0099887766', 'SLE', 'blocked',
     'Closed', 701, NULL, NULL, '2026-03-08', '2026-03-09');
INSERT INTO payout_runs VALUES
    (1193, 'processor', 1192, 1, 900, 'SLE', 701, '2026-03-10', 'adm_701', 'run-1', '\x01',
     '{"name": "Tapgate Ltd"}');
INSERT INTO payouts VALUES
    (1194, 'processor', 401, 41, 1191, 900, 10, 'SLE', 'returned', 'PO0000000000001A', 1193,
     999999997, 'BANK-1', 'Account closed', '2026-03-10', '2026-03-11');
INSERT INTO payout_schedules VALUES (401, 'weekly', 500, 10, 701, '2026-03-10', '2026-03-08');
