-- Who may call.
INSERT INTO admins VALUES (701, 'ada@example.com', 'Ada', 'system_admin', 'hash', 'active',
                           '2026-03-01', '2026-03-02'),
                          (702, 'ben@example.com', 'Ben', 'support_user', 'hash', 'disabled',
                           '2026-03-01', NULL);
INSERT INTO sessions VALUES (711, 701, '2026-03-02', NULL), (712, 702, '2026-03-01', '2026-03-02');
INSERT INTO refresh_tokens VALUES ('\x01', 711, '2026-04-02', NULL), ('\x02', 711, '2026-04-01', '2026-03-02');
INSERT INTO login_failures VALUES ('ada@example.com', '10.0.0.1', '{2026-03-02 10:00Z}');
INSERT INTO api_keys VALUES (721, '\x03', 'svc_live_ab', 'Shop', '{payments:write}', NULL, 701,
                             '2026-03-01', NULL),
                            (722, '\x04', 'svc_live_cd', 'Old', '{payments:read}', '2026-05-01',
                             701, '2026-03-01', '2026-03-02');
INSERT INTO hmac_keys VALUES (731, 401, 411, NULL, 'sealed', '2026-03-01', NULL),
                             (732, 401, 411, NULL, 'sealed', '2026-03-01', '2026-03-02'),
                             (733, NULL, NULL, 501, 'sealed', '2026-03-01', NULL);
INSERT INTO one_time_codes VALUES ('reset_pin', 201, 'key_1', '\x05', 1, '2026-03-02');
INSERT INTO restricted_access VALUES (701, 202, '2026-03-02');
