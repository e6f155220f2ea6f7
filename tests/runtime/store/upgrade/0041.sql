-- A message of a customer with its ID in the chat.
INSERT INTO support_messages (request_id, number, sender, sealed, created_at, message_id)
    SELECT id, 48, 'customer', 'sealed', '2026-03-01', 'chat:48' FROM support_requests LIMIT 1;
-- A support reply that was sent as plain text.
INSERT INTO messenger.outbox (id, address, content, status, next_attempt_at, created_at, text_form)
    VALUES (4801, '+23276003501', 'sealed', 'sent', '2026-03-01', '2026-03-01', 'sent');
