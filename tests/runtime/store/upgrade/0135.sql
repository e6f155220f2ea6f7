-- With archived transactions, so before the IDs of all others.
INSERT INTO book_transfers VALUES
    (-2, 'north', 'sub_06x53bzkm0001', 'Isatu B.', 'Aminata K.', 'pending', NULL, NULL, 2,
     '2026-03-10', 'no response', '2026-03-10', NULL),
    (-1, 'north', 'sub_06x53bzkm0002', 'Mohamed S.', 'Aminata K.', 'delivered', NULL,
     'txn_06x53bzkm0003', 1, '2026-03-10', NULL, '2026-03-10', '2026-03-10');
