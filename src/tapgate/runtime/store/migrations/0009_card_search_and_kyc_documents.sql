-- Pictures that prove who a subscriber is.
CREATE TABLE kyc_documents (
    id bigint PRIMARY KEY,
    subscriber_id bigint NOT NULL REFERENCES subscribers (id),
    document_type text NOT NULL
        CHECK (document_type IN ('id_front', 'id_back', 'selfie', 'proof_of_address')),
    media_type text NOT NULL CHECK (media_type IN ('image/jpeg', 'image/png')),
    image bytea NOT NULL,                   -- sealed by the vault
    created_at timestamptz NOT NULL
);
-- What is sealed cannot be compressed.
ALTER TABLE kyc_documents ALTER COLUMN image SET STORAGE EXTERNAL;
CREATE INDEX kyc_documents_subscriber ON kyc_documents (subscriber_id, id);

-- What cards are searched by. A function and not a column: every payment writes the card's row.
CREATE FUNCTION card_words(serial text, uid text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN upper(serial) || coalesce(' ' || replace(uid, ':', ''), '');
CREATE INDEX cards_search ON cards USING gin (trigrams(card_words(serial, uid)));
CREATE INDEX cards_status ON cards (status, id);
