-- migration: expand
-- The menu that a person with an agent's phone sees: the agent's, or that of the own wallet.
ALTER TABLE messenger.people
    ADD role text,
    ADD CONSTRAINT people_role_check CHECK (role IN ('agent', 'wallet')) NOT VALID;
