-- migration: expand
-- The admin who received the webhook secret. Null: received before this was recorded.
ALTER TABLE partners ADD webhook_secret_by bigint;
