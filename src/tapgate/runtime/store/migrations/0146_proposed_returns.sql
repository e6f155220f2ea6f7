-- migration: expand
-- Payout that an open line would return, if approval rules require a person to confirm it.
ALTER TABLE bank_statement_lines ADD proposed_payout_id bigint;
