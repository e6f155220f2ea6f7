INSERT INTO approval_rules VALUES (801, 'agent_fund', 100000, '{finance_user}', 1, 86400);
INSERT INTO approvals (id, operation, operations, summary, changes, amount, sealed_request,
                       maker_id, maker_person, roles, required_approvers, created_at, expires_at,
                       updated_at)
SELECT 811, 'agent_fund', '{agent_fund}', 'Fund agent', '{}', 500000, '\x01', min(id),
       'ada@example.com', '{finance_user}', 1, '2026-03-06 09:00Z', '2026-03-07 09:00Z',
       '2026-03-06 09:00Z' FROM admins;
INSERT INTO approval_decisions
SELECT 811, max(id), 'ben@example.com', 'reject', 'Too much', '2026-03-06 10:00Z' FROM admins;
INSERT INTO guarded_calls VALUES
    (821, 'ada@example.com', '{agent_fund}', 5000, 'a-1', '\x01', '2026-03-06 09:00Z');
