-- A cash-out, and a cash-in that brought a part of it back.
INSERT INTO commission_rules VALUES ('agent_cashin', 1, 1100, 500)
ON CONFLICT (type, tier) DO UPDATE SET minimum_amount = 500;
UPDATE agents SET commission_remainder = -7 WHERE id = 301;
INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency, from_account,
                          to_account, usage_day, created_at, completed_at) VALUES
    (1012, 'agent_cashout', 'completed', 'agent', 20, 0, 'SLE', 22, 23, '2026-03-03',
     '2026-03-03 10:00Z', '2026-03-03 10:00Z'),
    (1013, 'agent_cashin', 'completed', 'agent', 20, 0, 'SLE', 23, 22, NULL,
     '2026-03-03 10:05Z', '2026-03-03 10:05Z');
INSERT INTO entries VALUES (1012, 0, 22, 23, 20), (1013, 0, 23, 22, 20);
UPDATE accounts SET usage_day = '2026-03-03', day_used = 20, month_used = 20 WHERE id = 22;
INSERT INTO figures VALUES
    ('2026-03-03 10:00Z', 'agent_cashout', 'completed', NULL, -1, 1, 20, 0),
    ('2026-03-03 10:00Z', 'agent_cashin', 'completed', NULL, -1, 1, 20, 0);
INSERT INTO cash_matches VALUES (1013, 1012, 20, '2026-03-03 10:05Z');
