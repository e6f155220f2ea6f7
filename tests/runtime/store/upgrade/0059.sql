INSERT INTO admin_totp VALUES (701, '\x01', 58000000, '2026-03-07 09:00Z', NULL);
INSERT INTO admin_recovery_codes VALUES (701, '\x02', NULL), (701, '\x03', '2026-03-08 09:00Z');
UPDATE sessions SET is_console = true, factor_at = '2026-03-07 09:00Z', ip = '192.0.2.7',
       last_seen_at = '2026-03-07 09:10Z', user_agent = 'Firefox' WHERE id = 711;
