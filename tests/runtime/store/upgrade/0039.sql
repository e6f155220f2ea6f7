-- A kept image, and an open form for a PIN reset.
INSERT INTO messenger.images VALUES
    (3901, '+23276000039', 'digest', 'image/png', 'sealed', '2026-03-02');
INSERT INTO messenger.forms (token_hash, address, form, operation, language, text, expires_at)
    VALUES ('hash 39', '+23276000039', 'reset_pin', 'op-39', 'fr', 'Code', '2026-03-02');
