UPDATE card_keysets SET master_key = '\x02' WHERE id = 601;
UPDATE cards SET master_keyset_id = 601 WHERE keyset_id = 601;
UPDATE card_taps SET processor_id = 1 WHERE id = 611;
