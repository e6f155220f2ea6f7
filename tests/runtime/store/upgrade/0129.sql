INSERT INTO cash_out_requests VALUES
    (1231, 301, 201, NULL, 500, 'SLE', 'open', NULL, '2026-03-10', '2026-03-10', '2026-03-10',
     'messenger', 'cash-out-1', '\x01'),
    (1232, 301, 202, 'TAP-1', 700, 'SLE', 'confirmed', 999999997, '2026-03-10', '2026-03-10',
     '2026-03-10', 'messenger', 'cash-out-2', '\x02');
