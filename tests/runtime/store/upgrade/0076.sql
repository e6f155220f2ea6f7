INSERT INTO branding (name, color, updated_at) VALUES ('Salone Pay', '#7c2d12', '2026-03-06 09:00Z');
UPDATE admins SET theme = 'dark', timezone = 'Africa/Freetown';
