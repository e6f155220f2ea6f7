INSERT INTO float_requests VALUES
    (1221, 301, NULL, 500, 'SLE', 'Market day', 'funded', '2026-03-10', 999999997, NULL,
     '2026-03-10', '2026-03-10', 'messenger', 'ask-1', '\x01'),
    (1222, 301, 302, 700, 'SLE', NULL, 'open', '2026-03-11', NULL, NULL, '2026-03-11',
     '2026-03-11', NULL, NULL, NULL);
