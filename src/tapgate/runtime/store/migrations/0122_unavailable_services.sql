-- migration: expand
-- Chat requests for services that are not offered, for the reports.
CREATE INDEX chat_turns_unavailable ON chat_turns (id)
    WHERE command IN ('airtime', 'bills', 'loans');
