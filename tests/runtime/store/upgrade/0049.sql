INSERT INTO card_keysets VALUES
    (601, 'Bureau', 1, '66E94B66E94B', '\x01', 'active', '2026-03-06 09:00Z', '2026-03-06 09:00Z');
UPDATE cards SET authenticity = 'sun', keyset_id = 601, key_version = 1, last_counter = 61
WHERE id = (SELECT min(id) FROM cards);
INSERT INTO card_taps
SELECT min(id), 611, '2026-03-06 10:00Z', 60, NULL, 'used' FROM cards;
INSERT INTO proof_rules VALUES (1, 100000);
