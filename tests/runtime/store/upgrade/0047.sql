INSERT INTO nodes (id, role, host, port, version, settings, problems, started_at, last_seen,
                   newest_migration)
VALUES ('node-b', 'gateway', 'b.example', 8000, '1.1.0', '{}', '{}', '2026-03-01', '2026-03-01',
        '0047');
