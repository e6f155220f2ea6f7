-- A transaction that completed after a review.
INSERT INTO released_transactions VALUES (2, 22, 21, '2026-03-05 10:00Z');
