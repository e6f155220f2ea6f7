INSERT INTO admin_passkeys VALUES
    (731, 701, '\x0a', '\x0b', 0, 'Phone', '2026-03-09 09:00Z', NULL),
    (732, 701, '\x0c', '\x0d', 7, 'Security key', '2026-03-09 09:10Z', '2026-03-10 09:00Z');
INSERT INTO used_passkey_challenges VALUES ('\x0e', '2026-03-10 09:05Z');
