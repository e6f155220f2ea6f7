INSERT INTO compliance_rules VALUES
    (1101, 'Large amount', 'AMOUNT_THRESHOLD', '{transfer_p2p}', 40000, NULL, 'review', 'HIGH',
     'active'),
    (1102, 'Many', 'TRANSACTION_COUNT', '{pos_payment}', 10, 3600, 'alert', 'LOW', 'inactive');
INSERT INTO alerts VALUES
    (1111, 201, 1008, 1101, 'AMOUNT_THRESHOLD', 'HIGH', 'open', true, '{"amount": 40000}', 1, NULL,
     NULL, NULL, '2026-03-02', '2026-03-02'),
    (1112, 202, NULL, 1102, 'TRANSACTION_COUNT', 'LOW', 'resolved', false, '{}', 3, 'known', 701,
     '2026-03-02', '2026-03-01', '2026-03-02'),
    (1113, 202, NULL, NULL, 'SUPPORT_REQUEST', 'LOW', 'open', false,
     '{"asked_by": "+23276000202"}', 1, NULL, NULL, NULL, '2026-03-01', '2026-03-01'),
    (1114, 202, NULL, NULL, 'SUPPORT_REQUEST', 'LOW', 'investigating', false,
     '{"asked_by": "+23276000202"}', 1, NULL, NULL, NULL, '2026-03-02', '2026-03-02');
