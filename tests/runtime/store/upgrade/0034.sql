-- Pending codes for the PINs of a child card and an agent.
INSERT INTO one_time_codes VALUES
    ('reset_pin', 604, 'card', '\x06', 0, '2026-03-02', 0, NULL),
    ('reset_pin', 301, 'agent', '\x07', 1, '2026-03-02', 3, '2026-03-01');
