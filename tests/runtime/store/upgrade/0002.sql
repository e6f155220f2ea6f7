-- Who holds what is in the books, and their cards.
INSERT INTO subscribers (id, account_id, phone_number, first_name, last_name, email, date_of_birth,
                         id_type, id_number, kyc_status, restricted, created_at, updated_at) VALUES
    (201, 21, '+23276000201', 'Aminata', 'Kamara', NULL, NULL, NULL, NULL, 'NONE', false,
     '2026-03-01', '2026-03-01'),
    (202, 22, '+23276000202', 'Mohamed', 'Sesay', 'm@example.com', '1990-02-03', 'PASSPORT',
     'SL0202', 'VERIFIED', true, '2026-03-01', '2026-03-02');
INSERT INTO cards (id, serial, uid, type, status, subscriber_id, account_id, pin_holder_id,
                   holder_name, relationship, daily_limit, usage_day, day_spent, day_unpinned,
                   expires_at, linked_at, created_at, updated_at) VALUES
    (601, 'CARD-1', '04:A1:B2', 'PARENT', 'ACTIVE', 201, 21, 201, NULL, NULL, NULL, '2026-03-02',
     15000, 0, '2031-03-01', '2026-03-01', '2026-03-01', '2026-03-01'),
    (602, 'CARD-2', NULL, 'PARENT', 'ACTIVE', 202, 22, 202, NULL, NULL, NULL, NULL, 0, 0, NULL,
     '2026-03-01', '2026-03-01', '2026-03-01'),
    (603, 'CARD-3', NULL, NULL, 'UNASSIGNED', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL,
     NULL, '2026-03-01', '2026-03-01'),
    (604, 'CARD-4', NULL, 'CHILD', 'BLOCKED', 201, 21, 604, 'Isata', 'daughter', 5000, NULL, 0, 0,
     NULL, '2026-03-01', '2026-03-01', '2026-03-01');
INSERT INTO agents VALUES (301, 23, 24, 'super_agent', NULL, 'Marah Money Point', '+23276000301',
                           NULL, 'Bo', 1, '2026-03-01', '2026-03-01');
INSERT INTO processors VALUES (401, 25, '+23276000401', 'shop@example.com', '2026-03-01',
                               '2026-03-01');
INSERT INTO terminals VALUES (411, 401, 'Till 1', 'active', '2026-03-02', '2026-03-01');
INSERT INTO partners VALUES (501, 26, 'sealed', '2026-03-01');
