INSERT INTO proofs (proven_at, seconds, transactions, entries, accounts, broken)
VALUES (now(), 0.5, 3, 4, 5, '{}');
