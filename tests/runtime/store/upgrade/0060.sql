INSERT INTO admin_invitations VALUES (702, '\x05', '2026-03-07 09:00Z', '2026-03-10 09:00Z');
