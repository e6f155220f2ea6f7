-- migration: expand
-- Fixed part, minimum and maximum of a fee, in minor units. A null maximum is no maximum.
ALTER TABLE fee_rules
    ADD fixed bigint NOT NULL DEFAULT 0 CHECK (fixed >= 0),
    ADD minimum bigint NOT NULL DEFAULT 0 CHECK (minimum >= 0),
    ADD maximum bigint CHECK (maximum >= minimum);
