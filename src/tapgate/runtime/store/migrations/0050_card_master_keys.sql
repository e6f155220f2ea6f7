-- migration: expand
-- Keys 0, 3 and 4 of a card are derived from a random key of its first keyset. A keyset of an
-- earlier release gets this key when a card is personalized with it. A card with keys but without
-- master_keyset_id was encoded before: its own keys are derived from the secret key.
ALTER TABLE card_keysets
    ADD master_key bytea;                   -- sealed
ALTER TABLE cards
    ADD master_keyset_id bigint REFERENCES card_keysets (id);

-- The processor that sent a rejected tap, so that one processor cannot displace the taps of others.
ALTER TABLE card_taps
    ADD processor_id bigint;
