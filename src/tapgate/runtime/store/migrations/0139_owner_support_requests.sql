-- migration: expand
-- Support requests of a processor's, partner's or agent's users. They have no phone number: the
-- conversation is in the portal. `about` is the transaction, payout or dispute in question.
ALTER TABLE support_requests
    ALTER phone_number DROP NOT NULL,
    ADD owner_type text,
    ADD owner_id bigint,
    ADD opened_by bigint REFERENCES admins,
    ADD about text,
    ADD CONSTRAINT support_requests_owner_check
        CHECK (num_nonnulls(owner_type, owner_id, opened_by) IN (0, 3)) NOT VALID;
