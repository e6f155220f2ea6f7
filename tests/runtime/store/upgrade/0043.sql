-- Transfers to a company and back, with an idempotency key each and the reference of a partner.
INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency, from_account,
                          to_account, scope, request_id, fingerprint, answer, partner_id,
                          partner_reference, created_at, completed_at) VALUES
    (1043, 'transfer', 'completed', 'admin', 30, 0, 'SLE', 23, 25, 'key_1', 'there', 'f', 'a', 501,
     'remit-43', '2026-03-05 10:00Z', '2026-03-05 10:00Z'),
    (1044, 'transfer', 'completed', 'admin', 30, 0, 'SLE', 25, 23, 'key_1', 'back', 'f', 'a', NULL,
     NULL, '2026-03-05 10:00Z', '2026-03-05 10:00Z');
INSERT INTO entries VALUES (1043, 0, 23, 25, 30), (1044, 0, 25, 23, 30);
INSERT INTO figures VALUES ('2026-03-05 10:00Z', 'transfer', 'completed', NULL, -1, 2, 60, 0);
