-- migration: expand
-- A code from the holder's phone also confirms the replacement of a lost card.
ALTER TABLE one_time_codes
    DROP CONSTRAINT one_time_codes_purpose_check,
    ADD CONSTRAINT one_time_codes_purpose_check
        CHECK (purpose IN ('reset_pin', 'restricted_access', 'replace_card')) NOT VALID;
