INSERT INTO messenger.people VALUES ('+23276000201', '+23276000201', 'en', true, '2026-03-02'),
                                    ('user:7', NULL, NULL, false, '2026-03-02');
INSERT INTO messenger.recipients VALUES ('+23276000201', 'CARD-2', 'Mohamed S.', '2026-03-02');
INSERT INTO messenger.conversations VALUES ('+23276000201', '{"step": "amount"}', 1772445600,
                                            '2026-03-02 10:30Z', 5, '2026-03-02 10:01Z');
INSERT INTO messenger.received VALUES
    (1501, 'wamid.1', '+23276000201', 1772445600, NULL, false, 1, '2026-03-02', 'handled', 1,
     '2026-03-02'),
    (1502, 'wamid.2', '+23276000201', 1772445601, '{"text": "send 5"}', false, 1, '2026-03-02',
     'waiting', 0, '2026-03-02');
INSERT INTO messenger.outbox VALUES
    (1511, '+23276000201', 'sealed', 'key-1', 'waiting', NULL, 0, '2026-03-02', '2026-03-02', NULL),
    (1512, '+23276000201', NULL, NULL, 'sent', NULL, 1, '2026-03-02', '2026-03-02', 'wamid.3');
INSERT INTO messenger.rates VALUES ('+23276000201', '2026-03-02', 3, false);
INSERT INTO messenger.forms VALUES ('\x07', '+23276000201', 'pin', 'transfer', 'en', '5.00 to M.',
                                    '2026-03-02', NULL);
INSERT INTO messenger.codes VALUES ('user:7', '+23276000202', '\x08', 3, '2026-03-02');
