INSERT INTO card_own_keys SELECT min(id), 'sealed' FROM cards;
