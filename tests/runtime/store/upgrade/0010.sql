INSERT INTO statements VALUES (1401, '\x06', 201, '2026-03-01', '2026-03-02', 'pdf',
                               decode(repeat('5e', 10000), 'hex'), '2026-03-02', '2026-03-03');
