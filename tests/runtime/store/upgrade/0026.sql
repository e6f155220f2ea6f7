INSERT INTO messenger.statuses VALUES ('wamid.1', NULL, 'failed', '131026', '2026-03-02 12:30Z');
