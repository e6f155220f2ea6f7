-- A gateway that died and a messenger.
INSERT INTO nodes VALUES
    ('node-a', 'gateway', 'a.example', 8000, '1.0.0', '{"TAPGATE_TIMEZONE": "9f"}', '{disk_full}',
     0.25, '2026-03-01', '2026-03-01 01:00Z'),
    ('node-a', 'messenger', 'a.example', 8001, '1.0.0', '{}', '{}', NULL, '2026-03-01',
     '2026-03-01 01:00Z');
