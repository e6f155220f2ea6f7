INSERT INTO provider_warnings VALUES
    ('template', 'one_time_code (en)', 'PAUSED', 'Low quality', false,
     '2026-03-09 09:00Z', '2026-03-09 09:01Z'),
    ('account', 'account', 'ACCOUNT_REINSTATED', NULL, true,
     '2026-03-09 10:00Z', '2026-03-09 10:01Z');
