UPDATE messenger.outbox SET sms_at = '2026-03-10' WHERE id = (SELECT min(id) FROM messenger.outbox);
