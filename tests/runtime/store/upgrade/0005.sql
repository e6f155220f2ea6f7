INSERT INTO messages VALUES
    (901, '+23276000201', 'one_time_code', 'en', 'sealed', 'pending', 2, '2026-03-02', '2026-03-03',
     '2026-03-02'),
    (902, '+23276000201', 'card_blocked', 'en', NULL, 'delivered', 1, '2026-03-01', '2026-03-02',
     '2026-03-01'),
    (903, '+23276000202', 'one_time_code', 'fr', NULL, 'expired', 9, '2026-03-01', '2026-03-01',
     '2026-03-01');
