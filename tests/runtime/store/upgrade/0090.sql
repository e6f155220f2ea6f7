UPDATE admin_recovery_codes SET created_at = '2026-03-07 09:00Z' WHERE code_hash = '\x02';
