INSERT INTO number_checks VALUES
    (100, 'conflict', 'north', 2, '2026-03-11', '2026-03-10'),
    (101, 'pending', NULL, 0, '2026-03-11', '2026-03-10');
