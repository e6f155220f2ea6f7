-- ID of a customer's message in the chat, so that a repeated message is stored once.
ALTER TABLE support_messages ADD message_id text;
CREATE UNIQUE INDEX support_messages_by_message_id ON support_messages (request_id, message_id);

-- A support reply that was sent as plain text instead of its template. Its content is kept, so that
-- the template can be sent if the provider reports later that it could not deliver the text.
ALTER TABLE messenger.outbox
    ADD text_form text CHECK (text_form IN ('sent', 'failed'));
