INSERT INTO admin_identities
SELECT min(id), 'https://login.example.com', '00u1', '2026-03-07 09:00Z' FROM admins;
INSERT INTO oidc_logins VALUES ('\x01', NULL, '2026-03-07 09:10Z');
