INSERT INTO ledger_keys VALUES ('ledger-1', '\x01', '\x02', '2026-03-01', '2026-03-02');
INSERT INTO closed_days VALUES
    ('2026-03-01', '2026-03-01', '2026-03-02', 1, 1, '{}', '\x03', '\x04', '\x05', 'ledger-1',
     '2026-03-02');
INSERT INTO closed_day_chunks VALUES ('2026-03-01', 0, 1, 1, '\x03', '{1}', '\x03');
INSERT INTO open_days (starts_at) VALUES ('2026-03-02');
