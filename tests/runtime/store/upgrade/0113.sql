INSERT INTO disputes VALUES
    (1101, 701, 201, 401, 1500, 'SLE', 'not_received', 'Nothing came', 'answered', 'Sent', NULL,
     '2026-03-16', '2026-03-09', '2026-03-10', 'service:messenger', 'dispute-1', '\x0102');
INSERT INTO notices (transaction_id, kind, subscriber_id) VALUES (701, 'money_corrected', 201);
