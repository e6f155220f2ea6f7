UPDATE admin_totp SET pending_secret = '\x04', pending_session_id = 711,
       pending_since = '2026-03-08 09:00Z';
UPDATE cards SET pending_since = '2026-03-08 09:10Z' WHERE id = (SELECT min(id) FROM cards);
