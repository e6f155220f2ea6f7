INSERT INTO admin_link_views (admin_id, viewer_id, seen_at)
SELECT max(id), min(id), '2026-03-08 09:00Z' FROM admins;
