-- What people wrote may be a one-time code, and is nobody's to read: `content` is what versions before
-- this one left waiting.
ALTER TABLE messenger.received ADD COLUMN sealed bytea;  -- by the vault; removed once handled
