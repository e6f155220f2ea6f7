-- A month without transactions, archived with another secret key, and a cash-in after a review.
INSERT INTO archived_months VALUES
    (0, 1, '2026_02', 0, 0, 0, '\x01', '\x02', '2026-03-05 10:00Z', 'command line:root', true, '{}', NULL);
INSERT INTO archived_sums VALUES (21, 0);
INSERT INTO released_cash VALUES (1, 'agent_cashin', 22, 21, 5, '2026-03-05 10:00Z');
