UPDATE messenger.people SET language_due_at = '2026-03-02';
