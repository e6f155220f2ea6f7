-- A closed and an answered request of one phone, and an open one without a subscriber.
INSERT INTO support_requests (id, phone_number, subscriber_id, status, assignee, created_at,
                              updated_at) VALUES
    (3501, '+23276003501', NULL, 'closed', NULL, '2026-03-01', '2026-03-02'),
    (3502, '+23276003501', NULL, 'answered', NULL, '2026-03-03', '2026-03-03'),
    (3503, '+23276003502', NULL, 'open', NULL, '2026-03-03', '2026-03-03');
INSERT INTO support_messages (request_id, number, sender, sealed, created_at) VALUES
    (3501, 1, 'customer', 'sealed', '2026-03-01'),
    (3502, 1, 'customer', 'sealed', '2026-03-03'),
    (3502, 2, 'staff', 'sealed', '2026-03-03'),
    (3503, 1, 'customer', 'sealed', '2026-03-03');
INSERT INTO messenger.people (address, support, updated_at) VALUES
    ('+23276003501', 'told', '2026-03-03'), ('+23276003502', 'open', '2026-03-03');
INSERT INTO messenger.conversations (address, state, expires_at, transcript) VALUES
    ('+23276003501', '{}', '2026-03-03', 'sealed');
