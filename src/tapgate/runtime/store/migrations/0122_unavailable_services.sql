-- migration: expand concurrently
-- Chat requests for services that are not offered, for the reports.
DROP INDEX CONCURRENTLY IF EXISTS chat_turns_unavailable;
CREATE INDEX CONCURRENTLY chat_turns_unavailable ON chat_turns (id)
    WHERE command IN ('airtime', 'bills', 'loans');
