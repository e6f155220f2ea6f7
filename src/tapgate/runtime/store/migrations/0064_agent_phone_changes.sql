-- migration: expand
-- After a change of the phone number, an agent's PIN cannot be reset for 24 hours.
ALTER TABLE agents ADD phone_number_changed_at timestamptz;
