-- A checkpoint whose authentication code is wrong, as if the secret key were another one.
INSERT INTO verified_ranges VALUES (0, 1, 0, 0, '\x01', '\x02', '2026-03-05 10:00Z');
INSERT INTO verified_sums VALUES (21, 0);
INSERT INTO verified_sums_seal (end_id, mac) VALUES (1, '\x03');
